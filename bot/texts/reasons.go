package texts

import (
	"regexp"
	"strings"
	"sync"
)

// Reason says why a call needs approval or is refused. The policy gives its reasons in English sentences, which the
// audit keeps; a reader of another language gets the same sentence in theirs. A sentence without a translation is
// replaced by general words rather than shown in English.
func (w Words) Reason(language, english string) string {
	b := w.in(language)
	if b.reasons == nil || english == "" {
		return english
	}
	if text, ok := b.reasons().say(english); ok {
		return text
	}
	return b.someReason
}

// Note says where a call runs and under which limits. Its parts are separated by " · "; a part without a translation,
// such as a name, is not changed.
func (w Words) Note(language, english string) string {
	b := w.in(language)
	if b.reasons == nil {
		return english
	}
	parts := strings.Split(english, " · ")
	for i, part := range parts {
		if text, ok := b.reasons().say(part); ok {
			parts[i] = text
		}
	}
	return strings.Join(parts, " · ")
}

// phrases translate sentences with gaps. Safe for concurrent use.
type phrases struct {
	list []phrase
}

type phrase struct {
	match  *regexp.Regexp
	gaps   []string // as in newPhrases
	pieces []string // of the translation, around its gaps
}

var gap = regexp.MustCompile(`\{[-:,]?\}`)

// newPhrases parses a table with a sentence and its translation on each line, separated by " = "; both have the same
// gaps in the same order. {} stands for words that are not changed, {,} for clauses separated by commas, which are
// translated, {:} for ": " and a clause that is omitted if it cannot be translated, {-} for words that are omitted.
func newPhrases(table string) *phrases {
	p := &phrases{}
	for line := range strings.Lines(table) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			continue
		}
		pattern := regexp.QuoteMeta(from)
		for mark, group := range map[string]string{"{}": `(.+)`, "{:}": `: (.+)`, "{,}": "([^`]+?)", "{-}": "(.+)"} {
			pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta(mark), group)
		}
		p.list = append(p.list, phrase{
			match: regexp.MustCompile(`(?s)^` + pattern + `$`), gaps: gap.FindAllString(from, -1),
			pieces: gap.Split(to, -1),
		})
	}
	return p
}

// say translates a sentence.
func (p *phrases) say(text string) (string, bool) {
	for i := range p.list {
		ph := &p.list[i]
		found := ph.match.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		var b strings.Builder
		for j, piece := range ph.pieces {
			b.WriteString(piece)
			if j < len(ph.gaps) {
				b.WriteString(p.fill(ph.gaps[j], found[j+1]))
			}
		}
		return b.String(), true
	}
	return "", false
}

// fill returns the content of a gap.
func (p *phrases) fill(mark, words string) string {
	switch mark {
	case "{:}":
		if said, ok := p.say(words); ok {
			return ": " + said
		}
		return ""
	case "{,}":
		parts := strings.Split(words, ", ")
		for i, part := range parts {
			if said, ok := p.say(part); ok {
				parts[i] = said
			}
		}
		return strings.Join(parts, ", ")
	case "{-}":
		return ""
	}
	return words
}

// germanReasons are the sentences of the policy and of the tools in German, longer ones before shorter ones where both
// match.
var germanReasons = sync.OnceValue(func() *phrases {
	return newPhrases(`
The source of this call is blocked. = Die Quelle dieses Aufrufs ist gesperrt.
The source of this call is quarantined and may only use tools that read. = Die Quelle dieses Aufrufs steht unter Quarantäne und darf nur lesen.
The command {} is never allowed here. = Der Befehl {} ist hier nie erlaubt.
The command {} is blocked by the operator. = Den Befehl {} hat der Betreiber gesperrt.
The command only reads inside the allowed paths. = Der Befehl liest nur innerhalb der erlaubten Pfade.
Network commands such as {} are switched off. = Netzwerkbefehle wie {} sind abgeschaltet.
The autonomy level is full, so nothing is asked. = Die Autonomiestufe ist full, darum wird nicht gefragt.
The autonomy level is readonly: only files and web pages may be read. = Die Autonomiestufe ist readonly: Nur Dateien und Webseiten dürfen gelesen werden.
Content from {} tried to give instructions in this conversation, so this needs a person's approval. = Inhalt von {} hat in diesem Gespräch versucht, Anweisungen zu geben; darum muss das jemand erlauben.
A policy rule denies this. = Eine Regel der Policy verbietet das.
No policy rule allows this. = Keine Regel der Policy erlaubt das.
A rule denies to {,} {}. = Eine Regel verbietet {,}: {}.
A rule denies {}. = Eine Regel verbietet {}.
A rule allows {}. = Eine Regel erlaubt {}.
A rule wants a person to approve {}. = Eine Regel will, dass jemand das erlaubt: {}.
No rule allows {,} on {}. = Keine Regel erlaubt {,} auf {}.
No rule allows {}. = Keine Regel erlaubt {}.
This tool needs no approval. = Dieses Werkzeug braucht keine Erlaubnis.
It may {,} {}, which a rule denies. = Möglich ist {,} von {}, was eine Regel verbietet.
To read {} needs a person's approval. = Dass {} gelesen wird, muss jemand erlauben.
{} shows what the repository keeps, also of files that may not be read. = {} zeigt, was das Repository aufhebt, auch von Dateien, die nicht gelesen werden dürfen.
{} may read files that need approval or may not be read. = {} könnte Dateien lesen, die eine Erlaubnis brauchen oder nicht gelesen werden dürfen.
It is not certain which files {} reads{:}. = Es ist nicht sicher, welche Dateien {} liest{:}.
It is not certain which files {} reads. = Es ist nicht sicher, welche Dateien {} liest.
It is not certain what {} runs{:}. = Es ist nicht sicher, was {} ausführt{:}.
It is not certain what {} runs. = Es ist nicht sicher, was {} ausführt.
{} was approved for this conversation. = {} wurde für dieses Gespräch erlaubt.
An admin allowed {} permanently. = Ein Admin hat {} für immer erlaubt.
{} of {-}, and the rule does not name it. = {} kann mehr, als die Regel nennt{-}.
The redirection in {} writes to {}. = Die Umleitung in {} schreibt nach {}.
The operator wants a person to approve commands with {}. = Der Betreiber will, dass jemand Befehle mit {} erlaubt.
{} is obeyed by {-}: its content decides what later commands do. = Nach {} richten sich Programme beim Start{-}: Was dort steht, bestimmt, was spätere Befehle tun.
The tool calls of this conversation are used up. = Die Werkzeugaufrufe dieses Gesprächs sind aufgebraucht.
The tool {} is not permitted in this chat. = Das Werkzeug {} ist in diesem Chat nicht erlaubt.
The tool {} was not offered in this step. = Das Werkzeug {} wurde in diesem Schritt nicht angeboten.
The tool {} is blocked for {} more min because it failed too often ({-}). = Das Werkzeug {} ist noch {} min gesperrt, weil es zu oft versagt hat{-}.
This call needs the approval of a person, and nobody can be asked here. = Dieser Aufruf braucht die Freigabe einer Person, und hier ist niemand, den ich fragen kann.
This call was refused by the safety check. = Die Sicherheitsprüfung hat diesen Aufruf abgelehnt.
The safety check could not be made, so this call was not run. = Die Sicherheitsprüfung war nicht möglich, darum lief dieser Aufruf nicht.
The safety check could not be made. = Die Sicherheitsprüfung war nicht möglich.
The safety check would have refused this: {} = Die Sicherheitsprüfung hätte das abgelehnt: {}
read = das Lesen
write = das Schreiben
edit = das Ändern
create = das Anlegen
delete = das Löschen
move = das Verschieben
copy = das Kopieren
it only reads = er liest nur
it changes things = er ändert etwas
it may destroy what exists = er kann Vorhandenes zerstören
it destroys nothing = er zerstört nichts
repeating it changes nothing more = Wiederholen ändert nichts mehr
it reaches other systems = er erreicht andere Systeme
it stays within the server = es bleibt auf dem Server
a word is not known before it runs = ein Wort steht erst fest, wenn es läuft
its words are not known before it runs = seine Wörter stehen erst fest, wenn es läuft
it goes back to a directory = es geht in ein Verzeichnis zurück
it goes to a directory that is not known before it runs = es geht in ein Verzeichnis, das erst feststeht, wenn es läuft
it goes to too many directories = es geht in zu viele Verzeichnisse
it names too many files = es nennt zu viele Dateien
its working directory is not known = sein Arbeitsverzeichnis ist nicht bekannt
the text cannot be parsed = der Text ist nicht zu lesen
the command name comes from input = der Name des Befehls kommt aus der Eingabe
the command name {} comes from an expansion or a pattern = der Name des Befehls {} entsteht erst durch eine Ersetzung
two readings of the text differ about what runs = zwei Lesarten des Textes unterscheiden sich darin, was läuft
the text has {}, which shells may read differently = der Text enthält etwas, das Shells verschieden lesen können
arithmetic may run code that is hidden in a value = eine Rechnung kann Code ausführen, der in einem Wert steckt
commands are nested too deeply to follow = die Befehle sind zu tief verschachtelt
the command is longer than 64 KiB = der Befehl ist länger als 64 KiB
the text is not valid UTF-8 = der Text ist kein gültiges UTF-8
in the workspace of this chat = im Arbeitsbereich dieses Chats
in the working directory of this conversation = im Arbeitsverzeichnis dieses Gesprächs
in the allowed path {} = im erlaubten Pfad {}
network on = Netzwerk an
network off = Netzwerk aus
in the background = im Hintergrund
new file = neue Datei
replaces a file of 1 byte = ersetzt eine Datei mit 1 Byte
replaces a file of {} bytes = ersetzt eine Datei mit {} Bytes
an output of this conversation = eine Ausgabe dieses Gesprächs
server {} = Server {}
trusted = vertrauenswürdig
untrusted = nicht vertrauenswürdig
sandboxed = eingeschränkt
it may ask the model during the call = er darf während des Aufrufs das Modell fragen
the disk is full; free some space, nothing was stored = der Datenträger ist voll; schaffe Platz, gespeichert wurde nichts
the database cannot be written; check owner and permissions of the file and its directory = die Datenbank lässt sich nicht schreiben; prüfe Besitzer und Rechte der Datei und ihres Verzeichnisses
the database is damaged; stop the program and restore a backup = die Datenbank ist beschädigt; halte das Programm an und spiele eine Sicherung ein
the file is not a database; move it away or restore a backup = die Datei ist keine Datenbank; verschiebe sie oder spiele eine Sicherung ein
the disk reports an error; check the disk = der Datenträger meldet einen Fehler; prüfe ihn
the file cannot be opened; check that the directory exists and may be written = die Datei lässt sich nicht öffnen; prüfe, ob das Verzeichnis da und beschreibbar ist
access to the database is denied; check owner and permissions of the file = der Zugriff auf die Datenbank ist verweigert; prüfe Besitzer und Rechte der Datei
another program holds the database; close it = ein anderes Programm hält die Datenbank; beende es
there is not enough memory = es ist nicht genug Speicher da
the database failed = die Datenbank ist ausgefallen
the connection to the database was lost = die Verbindung zur Datenbank ging verloren
The server says: {,}. It is not a trusted server. = Der Server sagt: {,}. Er ist nicht vertrauenswürdig.
The server says: {,}. = Der Server sagt: {,}.
`)
})
