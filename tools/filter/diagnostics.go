package filter

import (
	"fmt"
	"strings"
)

const (
	leastGroup   = 4   // findings that say the same are one group from so many on
	placesWidth  = 150 // bytes of a line of places
	notesOfError = 2   // notes of a compiler that stay below an error
)

// diagnostics shortens what compilers and linters of the form file:line:column print: warnings that say the same become one group with all their places,
// excerpts of the source and notes go, but for the first notes below an error. Errors stay as they are, with their excerpt.
type diagnostics struct{}

func (diagnostics) names() bool { return true } // it takes lines that it recognised; every other one stays

// severity is what a diagnostic is.
type severity uint8

const (
	noDiagnostic severity = iota
	anError
	aWarning // of a compiler, or a finding of a linter
	aNote
)

// diagnostic is a line file:line:column: message.
type diagnostic struct {
	file, at, message string // at: line and column
	severity          severity
}

// reader of diagnostics on its way through the lines.
type diagnosing struct {
	j      *job
	out    []line
	counts map[string]int   // findings by what they say
	groups map[string]int   // place of the group in out
	places map[string][]int // lines that a group stands for
	order  []string
	before []line // how the compiler came to the next diagnostic
	last   severity
	notes  int
	shown  bool // the excerpt of the diagnostic that we are in stays
	taken  int  // lines that went
}

func (diagnostics) apply(j *job) ([]line, Confidence) {
	d := &diagnosing{j: j, counts: map[string]int{}, groups: map[string]int{}, places: map[string][]int{}}
	for i := range j.lines {
		if one := diagnose(j.lines[i].body()); one.severity == aWarning {
			d.counts[one.says()]++
		}
	}
	for i := range j.lines {
		d.take(i)
	}
	d.out = append(d.out, d.before...)
	if d.taken < 2 {
		return nil, Fallback
	}
	return d.write(), Full
}

// take reads one line.
func (d *diagnosing) take(i int) {
	l := &d.j.lines[i]
	body := l.body()
	one := diagnose(body)
	switch {
	case one.severity != noDiagnostic:
		d.head(i, one)
	case leads(body):
		d.last = noDiagnostic
		d.before = append(d.before, *l)
	case d.last != noDiagnostic && excerpt(body):
		if d.shown || l.keep {
			d.out = append(d.out, *l)
		} else {
			d.taken++
		}
	default:
		d.last = noDiagnostic
		d.out = append(append(d.out, d.before...), *l)
		d.before = d.before[:0]
	}
}

// head reads the first line of a diagnostic.
func (d *diagnosing) head(i int, one diagnostic) {
	l := &d.j.lines[i]
	d.last = one.severity
	stays := l.keep
	switch one.severity {
	case anError:
		d.out = append(d.out, d.before...)
		stays, d.notes = true, notesOfError
	case aNote:
		if stays = stays || d.notes > 0; stays {
			d.notes--
		}
		d.taken += len(d.before)
	default:
		d.notes = 0
		d.taken += len(d.before)
		if key := one.says(); d.counts[key] >= leastGroup {
			d.group(i, key)
			return
		}
		stays = true
	}
	d.before, d.shown = d.before[:0], stays && one.severity != aWarning
	if stays {
		d.out = append(d.out, *l)
	} else {
		d.taken++
	}
}

// group puts a finding to those that say the same.
func (d *diagnosing) group(i int, key string) {
	if _, ok := d.groups[key]; !ok {
		d.groups[key] = len(d.out)
		d.order = append(d.order, key)
		d.out = append(d.out, line{src: -1})
	}
	d.places[key] = append(d.places[key], i)
	d.j.cover(d.j.lines[i].src)
	d.before, d.shown = d.before[:0], false
	d.taken++
}

// write puts the groups where the first finding of each stood.
func (d *diagnosing) write() []line {
	at := make(map[int]string, len(d.order))
	for _, key := range d.order {
		at[d.groups[key]] = key
	}
	out := make([]line, 0, len(d.out))
	for i := range d.out {
		if key, ok := at[i]; ok {
			out = append(out, d.lines(d.places[key])...)
		} else {
			out = append(out, d.out[i])
		}
	}
	return out
}

// lines writes a group: what is said, and each file with its places, each once.
func (d *diagnosing) lines(list []int) []line {
	head := &d.j.lines[list[0]]
	first := diagnose(head.body())
	out := []line{{text: fmt.Sprintf("%s%s (%d places):", head.text[:head.off], first.message, len(list)), src: -1, off: head.off, keep: true}}
	var files []string
	at, known := map[string]string{}, map[string]bool{}
	for _, i := range list {
		one := diagnose(d.j.lines[i].body())
		place := one.file + ":" + one.at
		switch {
		case known[place]: // a header is read by every file that includes it
		case at[one.file] == "":
			files = append(files, one.file)
			at[one.file] = place
		default:
			at[one.file] += ", " + one.at
		}
		known[place] = true
	}
	row := ""
	for _, file := range files {
		if row != "" && len(row)+len(at[file]) > placesWidth {
			out = append(out, line{text: row, src: -1, keep: true})
			row = ""
		}
		if row != "" {
			row += "; " + at[file]
		} else {
			row = "  " + at[file]
		}
	}
	return append(out, line{text: row, src: -1, keep: true})
}

// says is what makes two findings the same: their words, whatever the numbers in them are. Digits of a name such as E501 count.
func (one diagnostic) says() string {
	s := one.message
	if !strings.ContainsAny(s, "0123456789") {
		return s
	}
	buf := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if !digit(s[i]) || i > 0 && (letter(s[i-1]) || digit(s[i-1])) {
			buf = append(buf, s[i])
			continue
		}
		for digit(byteAt(s, i+1)) {
			i++
		}
		buf = append(buf, '#')
	}
	return string(buf)
}

// diagnose reads file:line[:column]: message.
func diagnose(s string) (one diagnostic) {
	if s == "" || s[0] == ' ' || s[0] == '\t' {
		return one
	}
	colon := strings.IndexByte(s, ':')
	if colon <= 0 || !digit(byteAt(s, colon+1)) || !fileEndsAt(s[:colon]) {
		return one
	}
	end := colon + 1
	for digit(byteAt(s, end)) || s[end:] != "" && s[end] == ':' && digit(byteAt(s, end+1)) {
		end++
	}
	rest, ok := strings.CutPrefix(s[end:], ": ")
	if !ok {
		return one
	}
	one = diagnostic{file: s[:colon], at: s[colon+1 : end], message: rest}
	switch {
	case begin(rest, "error: ", "fatal error: "):
		one.severity = anError
	case strings.HasPrefix(rest, "warning: "):
		one.severity = aWarning
	case strings.HasPrefix(rest, "note: "):
		one.severity = aNote
	default:
		one.severity = ofCode(rest)
	}
	return one
}

// ofCode is the severity of a finding that begins with the code of a linter: E302, C0114:, SC2086. What says that the program cannot run is an error:
// E9, F63, F7 and F82 of flake8, E and F of pylint.
func ofCode(message string) severity {
	word, _, _ := strings.Cut(message, " ")
	word = strings.TrimSuffix(word, ":")
	letters := 0
	for letters < len(word) && word[letters] >= 'A' && word[letters] <= 'Z' {
		letters++
	}
	digits := len(word) - letters
	if letters == 0 || letters > 4 || digits < 2 || digits > 5 || strings.Trim(word[letters:], "0123456789") != "" {
		return noDiagnostic
	}
	if begin(word, "E9", "F63", "F7", "F82") || digits == 4 && letters == 1 && (word[0] == 'E' || word[0] == 'F') {
		return anError
	}
	return aWarning
}

// leads says whether a line tells how the compiler came to the diagnostic below it.
func leads(body string) bool {
	t := trimBlanks(body)
	return strings.HasPrefix(body, "In file included from ") || len(t) < len(body) && strings.HasPrefix(t, "from ") && (strings.HasSuffix(t, ":") || strings.HasSuffix(t, ",")) ||
		strings.HasSuffix(body, ":") && (strings.Contains(body, ": In function ") || strings.Contains(body, ": In instantiation of ") || strings.HasSuffix(body, ": At top level:"))
}

// excerpt says whether a line shows the source below a diagnostic: "   12 | int x;" and "      |     ^~~".
func excerpt(body string) bool {
	t := strings.TrimLeft(body, " 0123456789")
	return t != "" && t[0] == '|' && t != body
}
