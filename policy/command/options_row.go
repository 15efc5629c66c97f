package command

import "strings"

// optionRow is one row of a table of options. A table is a text with one row a line; a line that begins with a blank
// goes on with the row before it:
//
//	@ --version -C: sub                         options before the subcommand, or of a program without any
//	log, show: -p -n: --stat |writes --output   two subcommands with the same options
//	other:                                      a subcommand without a row of its own
//	daemon: ask serves this repository          the subcommand itself departs
//
// An option is listed with how it takes a value:
//
//	-v --stat    none, or for a long one after "="
//	-U? -j?      in the same word, if at all
//	-n: --name:  in the same word or the next
//	-C:/         a path that stays below this directory
//	-o:-         only the standard output
//	-d:@         data, and no file to be read
//	-l:~x        a text without x
//	-m:;         a value after which everything belongs to another program
//	-W*          every word that begins so
//	-exec...     a command up to ; or +
//	-#           a number
//
// The options after |runs, |writes, |leaves and |reads do just that; effectOf has the words for people. An option that
// is in neither part departs as well: it is not known to be harmless. These words of a row come before its options:
//
//	"*"       only the options after the first | do harm
//	sub       the first word chooses another row
//	first=N   options end at the Nth word
//	words=N   a word after the Nth is a file that is written
//	here      words are paths that stay below this directory, or addresses of the network
//	addr      words may be addresses; those that run a program depart
//	at        @file names a file with more options
//	plus      +command is run
//	assign    NAME=value is judged as make takes it
//	single    options have one dash and several letters
//	bundled   the first word may be letters without a dash
//	sed awk   words are scripts of these
//	keys      words are a key and a value of the configuration of git
//	~text     a word that holds text departs
type optionRow struct {
	harmless, risky                                                             string
	ask                                                                         string
	texts                                                                       string
	first, most                                                                 int
	any, subs, here, address, at, plus, assign, single, bundled, sed, awk, keys bool
	count                                                                       bool
}

// rowOf returns the row of a key; "" for none. A row continues on lines that begin with a blank; a table ends with a
// newline.
func rowOf(table, key string) string {
	for table != "" {
		end := strings.IndexByte(table, '\n') + 1
		for end < len(table) && table[end] == ' ' {
			end += strings.IndexByte(table[end:], '\n') + 1
		}
		row := table[:end]
		table = table[end:]
		names, rest, ok := strings.Cut(row, ":")
		if key == "@" {
			names, rest, ok = strings.Cut(row, " ")
		}
		if ok && strings.Contains(names, key) && named(names, key) {
			return rest
		}
	}
	return ""
}

// named reports whether a list with commas contains a name.
func named(list, name string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(each) == name {
			return true
		}
	}
	return false
}

// readRow parses a row. Words that are not options come first.
func readRow(row string) (r optionRow) {
	row = " " + row + " "
	r.harmless = row
	if at := strings.IndexByte(row, '|'); at >= 0 {
		r.harmless, r.risky = row[:at], row[at:]
	}
	r.count = holds(r.harmless, "-#") != ""
	for token := range strings.FieldsSeq(r.harmless) {
		switch {
		case token[0] == '-':
			return r
		case token == "ask":
			_, r.ask, _ = strings.Cut(row, "ask ")
			r.ask = strings.TrimSpace(r.ask)
			return r
		}
		r.token(token)
	}
	return r
}

// token parses one word of a row that is not an option.
func (r *optionRow) token(token string) {
	name, value, _ := strings.Cut(token, "=")
	switch name {
	case "*":
		r.any = true
	case "sub":
		r.subs = true
	case "first":
		r.first = int(value[0] - '0')
	case "words":
		r.most = int(value[0] - '0')
	case "here":
		r.here = true
	case "addr":
		r.address = true
	case "at":
		r.at = true
	case "plus":
		r.plus = true
	case "assign":
		r.assign = true
	case "single":
		r.single = true
	case "bundled":
		r.bundled = true
	case "sed":
		r.sed = true
	case "awk":
		r.awk = true
	case "keys":
		r.keys = true
	default:
		r.texts += token + " "
	}
}

// forbids reports whether a word contains one of the row's texts.
func (r *optionRow) forbids(text string) bool {
	if r.texts == "" {
		return false
	}
	text = strings.ToLower(text)
	for each := range strings.FieldsSeq(r.texts) {
		if strings.Contains(text, each[1:]) {
			return true
		}
	}
	return false
}

// long returns how an option that is a whole word takes a value, and what harm it does.
func (r *optionRow) long(key string) (kind, effect string) {
	kind, effect, known := r.find(key, key)
	if known {
		return kind, effect
	}
	if plain, ok := strings.CutPrefix(key, "--no-"); ok {
		if _, effect, known = r.find("--"+plain, ""); known && effect == "" {
			return "", ""
		}
	}
	return r.unknown()
}

// short does the same for a one-letter option. word is the word that begins with it; "" if it is not the first letter.
func (r *optionRow) short(word string, letter byte) (kind, effect string) {
	kind, effect, known := r.find("-"+string(letter), word)
	if known {
		return kind, effect
	}
	return r.unknown()
}

// unknown returns the answer for an option that the row does not list.
func (r *optionRow) unknown() (kind, effect string) {
	if r.any {
		return "", ""
	}
	return "", "is not known to be harmless"
}

// find searches a key in both parts of the row. The closer match counts; if both are equally close, the harmful one
// does. word is what an entry such as -W* is compared with.
func (r *optionRow) find(key, word string) (kind, effect string, known bool) {
	best := 0
	if entry := holds(r.harmless, key); entry != "" {
		kind, best = match(entry, key, "", false)
	} else if word != "" && strings.IndexByte(r.harmless, '*') >= 0 {
		for entry := range strings.FieldsSeq(r.harmless) {
			if found, close := match(entry, key, word, false); close > best {
				kind, best = found, close
			}
		}
	}
	now := ""
	for entry := range strings.FieldsSeq(r.risky) {
		if entry[0] != '-' {
			now = effectOf(entry)
			continue
		}
		if found, close := match(entry, key, word, true); close > 0 && (close > best || close == best && effect == "") {
			kind, effect, best = found, now, close
		}
	}
	return kind, effect, best > 0
}

// holds returns the entry of a list for a key, with its notation for a value; "" for none.
func holds(list, key string) string {
	for from := 0; ; {
		at := strings.Index(list[from:], key)
		if at < 0 {
			return ""
		}
		at += from
		from = at + len(key)
		if blank(list[at-1]) && (blank(list[from]) || strings.IndexByte(":?.", list[from]) >= 0) {
			return list[at : from+strings.IndexAny(list[from:], " \n")]
		}
	}
}

// blank reports whether a byte ends an entry.
func blank(c byte) bool { return c == ' ' || c == '\n' }

// How close an entry of a table is to an option, in addition to the length of what they share.
const (
	exact     = 1000
	shortened = 500
)

// match compares an entry with an option. It returns how the option takes a value and how close the two are, 0 for no
// match. Harmful entries also match abbreviated options, which getopt and git allow.
func match(entry, key, word string, harms bool) (kind string, close int) {
	if entry[0] != '-' || len(entry) > 1 && len(key) > 1 && entry[1] != key[1] {
		return "", 0
	}
	if stem, ok := strings.CutSuffix(entry, "*"); ok {
		if word != "" && strings.HasPrefix(word, stem) {
			return "*", len(stem)
		}
		return "", 0
	}
	name, kind := entryParts(entry, key)
	switch {
	case name == key:
		return kind, exact
	case harms && len(key) > 3 && strings.HasPrefix(key, "--") && strings.HasPrefix(name, key):
		return kind, shortened
	}
	return "", 0
}

// entryParts splits an entry into its option and the notation for its value.
func entryParts(entry, key string) (name, kind string) {
	if at := strings.IndexAny(entry, ":?"); at > 1 && !strings.HasPrefix(key, entry) {
		return entry[:at], entry[at:]
	}
	if stem, ok := strings.CutSuffix(entry, "..."); ok {
		return stem, "..."
	}
	return entry, ""
}

// effectOf describes what the options after a keyword of the table do.
func effectOf(word string) string {
	switch word {
	case "|runs":
		return "may run a program"
	case "|writes":
		return "writes a file"
	case "|leaves":
		return "leads out of this directory"
	}
	return "reads a file that it obeys"
}
