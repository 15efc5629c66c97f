package filter

import (
	"fmt"
	"strings"
)

const (
	leastGroup   = 4   // from this many equal findings on, they form a group
	placesWidth  = 150 // bytes of a line of locations
	notesOfError = 2   // compiler notes that are kept below an error
	mostWarnings = 20  // of a file that also has errors: with more of them, its warnings are treated like others
)

// diagnostics shortens the output of compilers and linters with lines of the form file:line:column. Equal warnings
// become one group with all their locations. Excerpts of the source and notes are dropped, except the first notes below
// an error. Errors are kept, with their excerpt, and so are the warnings of a file that has errors: they often say why.
type diagnostics struct{}

func (diagnostics) isNaming() bool { return true } // it drops only lines that it recognises

// severity is the kind of a diagnostic.
type severity uint8

const (
	noDiagnostic severity = iota
	anError
	aWarning // of a compiler, or a finding of a linter
	aNote
)

// diagnostic is a line file:line:column: message.
type diagnostic struct {
	colon    int32 // end of the file name
	end      int32 // end of line and column
	line     int32 // index among the lines
	group    int32 // for aWarning: index in diagnosing.groups; -1 = it is kept where it is
	severity severity
}

// messageOf returns the message of a diagnostic with this line.
func (one *diagnostic) messageOf(body string) string { return body[one.end+int32(len(": ")):] }

// findings is a group of equal warnings.
type findings struct {
	list []int // indexes in diagnosing.found
	at   int   // index of the group in out, if it has at least leastGroup findings
}

// diagnosing is a pass over the lines.
type diagnosing struct {
	j      *job
	out    []line
	found  []diagnostic // all, in order
	next   int          // the first of found that was not handled yet
	groups []findings
	placed []int  // groups already in out, in order
	before []line // how the compiler came to the next diagnostic
	last   severity
	notes  int
	shown  bool // the excerpt of the current diagnostic is kept
	taken  int  // number of dropped lines

	failing map[string]int // warnings of the files that have errors
}

func (diagnostics) applyTo(j *job) ([]line, Confidence) {
	d := &diagnosing{j: j}
	d.findAll()
	if len(d.found) == 0 {
		return nil, Fallback
	}
	d.out = make([]line, 0, len(j.lines))
	for i := range j.lines {
		d.takeLine(i)
	}
	d.out = append(d.out, d.before...)
	if d.taken < 2 {
		return nil, Fallback
	}
	return d.writeGroups(), Full
}

// findAll finds all diagnostics and groups equal warnings.
func (d *diagnosing) findAll() {
	for i := range d.j.lines {
		if one := parseDiagnostic(d.j.lines[i].bodyText()); one.severity != noDiagnostic {
			one.line, one.group = int32(i), -1
			d.found = append(d.found, one)
		}
	}
	d.findFailing()
	ids := map[string]int{}
	var key []byte
	for i := range d.found {
		one := &d.found[i]
		if one.severity != aWarning || d.isOfFailing(one) {
			continue
		}
		key = appendMessageKey(key[:0], one.messageOf(d.j.lines[one.line].bodyText()))
		id, ok := ids[string(key)]
		if !ok {
			id = len(d.groups)
			ids[string(key)] = id
			d.groups = append(d.groups, findings{at: -1})
		}
		one.group = int32(id)
		d.groups[id].list = append(d.groups[id].list, i)
	}
}

// findFailing finds the files that have errors.
func (d *diagnosing) findFailing() {
	d.failing = map[string]int{}
	for i := range d.found {
		if one := &d.found[i]; one.severity == anError {
			d.failing[d.fileOf(one)] = 0
		}
	}
	for i := range d.found {
		one := &d.found[i]
		if n, ok := d.failing[d.fileOf(one)]; ok && one.severity == aWarning {
			d.failing[d.fileOf(one)] = n + 1
		}
	}
}

func (d *diagnosing) fileOf(one *diagnostic) string {
	return d.j.lines[one.line].bodyText()[:one.colon]
}

// isOfFailing reports whether a warning is one of a few of a compiler about a file that has errors.
func (d *diagnosing) isOfFailing(one *diagnostic) bool {
	n, ok := d.failing[d.fileOf(one)]
	return ok && n <= mostWarnings && strings.HasPrefix(one.messageOf(d.j.lines[one.line].bodyText()), "warning: ")
}

// keepLine writes a line that later strategies may not drop either.
func (d *diagnosing) keepLine(l line) {
	l.keep = true
	d.out = append(d.out, l)
}

// takeLine handles one line.
func (d *diagnosing) takeLine(i int) {
	l := &d.j.lines[i]
	body := l.bodyText()
	switch {
	case d.next < len(d.found) && int(d.found[d.next].line) == i:
		d.takeHead(i, &d.found[d.next])
		d.next++
	case leadsToDiagnostic(l.wordHints(), body):
		d.last = noDiagnostic
		d.before = append(d.before, *l)
	case d.last != noDiagnostic && isExcerpt(body):
		if d.shown || l.keep {
			d.keepLine(*l)
		} else {
			d.taken++
		}
	default:
		d.last = noDiagnostic
		d.out = append(append(d.out, d.before...), *l)
		d.before = d.before[:0]
	}
}

// takeHead handles the first line of a diagnostic.
func (d *diagnosing) takeHead(i int, one *diagnostic) {
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
	case aWarning:
		d.notes = 0
		if one.group < 0 {
			for _, lead := range d.before {
				d.keepLine(lead)
			}
			d.before, d.shown, d.notes = d.before[:0], true, notesOfError
			d.keepLine(*l)
			return
		}
		d.taken += len(d.before)
		if len(d.groups[one.group].list) >= leastGroup {
			d.addToGroup(i, int(one.group))
			return
		}
		stays = true
	}
	d.before, d.shown = d.before[:0], stays && one.severity != aWarning
	if stays && d.shown {
		d.keepLine(*l)
	} else if stays {
		d.out = append(d.out, *l)
	} else {
		d.taken++
	}
}

// addToGroup adds a finding to its group.
func (d *diagnosing) addToGroup(i, id int) {
	if g := &d.groups[id]; g.at < 0 {
		g.at = len(d.out)
		d.placed = append(d.placed, id)
		d.out = append(d.out, line{src: -1})
	}
	d.j.coverSource(d.j.lines[i].src)
	d.before, d.shown = d.before[:0], false
	d.taken++
}

// writeGroups inserts each group at the place of its first finding.
func (d *diagnosing) writeGroups() []line {
	if len(d.placed) == 0 {
		return d.out
	}
	out := make([]line, 0, len(d.out)+4*len(d.placed))
	from := 0
	w := &places{at: map[string]int{}, known: map[[2]string]bool{}}
	for _, id := range d.placed {
		g := &d.groups[id]
		out = append(out, d.out[from:g.at]...)
		out = d.writeGroup(out, g.list, w)
		from = g.at + 1
	}
	return append(out, d.out[from:]...)
}

// places collects the locations of a group, by file.
type places struct {
	texts [][]byte       // of each file, in order of appearance
	at    map[string]int // index of a file in texts
	known map[[2]string]bool
}

// writeGroup writes a group: the message, then each file with its locations, without duplicates.
func (d *diagnosing) writeGroup(out []line, list []int, w *places) []line {
	first := &d.found[list[0]]
	head := &d.j.lines[first.line]
	out = append(out,
		line{
			text: fmt.Sprintf("%s%s (%d places):", head.text[:head.off], first.messageOf(head.bodyText()), len(list)),
			src:  -1,
			off:  head.off,
			keep: true,
		})
	w.texts = w.texts[:0]
	clear(w.at)
	clear(w.known)
	for _, i := range list {
		one := &d.found[i]
		body := d.j.lines[one.line].bodyText()
		w.addLocation(body[:one.colon], body[one.colon+1:one.end])
	}
	row := []byte("  ")
	for i, text := range w.texts {
		if i > 0 && len(row)+len(text) > placesWidth {
			out = append(out, line{text: string(row), src: -1, keep: true})
			row = row[:2]
		} else if i > 0 {
			row = append(row, "; "...)
		}
		row = append(row, text...)
	}
	return append(out, line{text: string(row), src: -1, keep: true})
}

// addLocation adds a location. A header is compiled once for every file that includes it,
// but each location counts once.
func (w *places) addLocation(file, at string) {
	place := [2]string{file, at}
	if w.known[place] {
		return
	}
	w.known[place] = true
	if i, ok := w.at[file]; ok {
		w.texts[i] = append(append(w.texts[i], ", "...), at...)
		return
	}
	w.at[file] = len(w.texts)
	n := len(w.texts)
	if n < cap(w.texts) { // reuse the buffer of an earlier group
		w.texts = w.texts[:n+1]
		w.texts[n] = w.texts[n][:0]
	} else {
		w.texts = append(w.texts, nil)
	}
	w.texts[n] = append(append(append(w.texts[n], file...), ':'), at...)
}

// appendMessageKey appends the key by which findings are equal: their message, ignoring numbers. Digits in a
// name such as E501 are not ignored.
func appendMessageKey(buf []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) || i > 0 && (isLetter(s[i-1]) || isDigit(s[i-1])) {
			buf = append(buf, s[i])
			continue
		}
		for isDigit(byteAt(s, i+1)) {
			i++
		}
		buf = append(buf, '#')
	}
	return buf
}

// parseDiagnostic parses file:line[:column]: message.
func parseDiagnostic(s string) (one diagnostic) {
	if s == "" || s[0] == ' ' || s[0] == '\t' {
		return one
	}
	colon := strings.IndexByte(s, ':')
	if colon <= 0 || !isDigit(byteAt(s, colon+1)) || !fileEndsAt(s[:colon]) {
		return one
	}
	end := colon + 1
	for isDigit(byteAt(s, end)) || s[end:] != "" && s[end] == ':' && isDigit(byteAt(s, end+1)) {
		end++
	}
	rest, ok := strings.CutPrefix(s[end:], ": ")
	if !ok {
		return one
	}
	one = diagnostic{colon: int32(colon), end: int32(end)}
	switch {
	case beginsWith(rest, "error: ", "fatal error: "):
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

// ofCode returns the severity of a finding that begins with a linter's code: E302, C0114:, SC2086. Codes for programs
// that cannot run are errors: E9, F63, F7 and F82 of flake8, E and F of pylint.
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
	if beginsWith(word, "E9", "F63", "F7", "F82") || digits == 4 && letters == 1 && (word[0] == 'E' || word[0] == 'F') {
		return anError
	}
	return aWarning
}

// leadsToDiagnostic reports whether a line says how the compiler came to the diagnostic below it.
func leadsToDiagnostic(hints uint64, body string) bool {
	if hints&leadHint == 0 {
		return false
	}
	t := trimBlanks(body)
	return strings.HasPrefix(body, "In file included from ") ||
		len(t) < len(body) && strings.HasPrefix(t, "from ") &&
			(strings.HasSuffix(t, ":") || strings.HasSuffix(t, ",")) ||
		strings.HasSuffix(body, ":") && (strings.Contains(body, ": In function ") ||
			strings.Contains(body, ": In instantiation of ") || strings.HasSuffix(body, ": At top level:"))
}

// isExcerpt reports whether a line shows the source below a diagnostic: "   12 | int x;" and "      |     ^~~".
func isExcerpt(body string) bool {
	t := strings.TrimLeft(body, " 0123456789")
	return t != "" && t[0] == '|' && t != body
}
