package outline

import "strings"

// pythonReader follows the lines of Python.
type pythonReader struct {
	lines
	blocks
	note      hashNote
	decorated int  // the line of the first decorator; 0 = none
	brackets  int  // open in the statement
	wants     int  // the symbol whose docstring may follow; -1 = none
	quote     byte // of the string over several lines that is open; 0 = none
}

func python(src []byte, out *builder) {
	r := &pythonReader{lines: lines{src: string(src)}, blocks: blocks{out: out}, wants: -1}
	for {
		text, ok := r.next()
		if !ok {
			break
		}
		r.read(text)
	}
	r.leave(0)
}

// read handles one line.
func (r *pythonReader) read(text string) {
	continued := r.quote != 0 || r.brackets > 0
	indent, rest := indentOf(text)
	if !continued {
		switch {
		case rest == "":
			return
		case rest[0] == '#':
			r.note.add(rest, r.line)
			return
		}
		r.leave(indent)
		r.statement(indent, rest)
	}
	r.seen = r.line
	r.scan(rest)
}

// statement handles the first line of a statement.
func (r *pythonReader) statement(indent int, rest string) {
	expected := r.wants
	r.wants = -1
	if expected >= 0 && (rest[0] == '"' || rest[0] == '\'' || strings.HasPrefix(rest, `r"""`)) {
		r.out.Symbols[expected].Doc = cutText(strings.Trim(rest, `r"' `), MaxDoc)
	}
	if rest[0] == '@' {
		if r.decorated == 0 {
			r.decorated = r.line
		}
		return
	}
	start := r.line
	if r.decorated > 0 {
		start = r.decorated
	}
	r.decorated = 0
	word, after := leadingWord(rest)
	if word == "async" {
		word, after = leadingWord(after)
	}
	in := r.inside()
	s := Symbol{Container: in.name, Start: start, Line: r.line, Doc: r.note.above(start)}
	s.Name, _ = leadingWord(after)
	switch {
	case word == "def":
		s.Kind = Function
		if in.kind == Class {
			s.Kind = Method
		}
	case word == "class":
		s.Kind = Class
	case in.kind == "" || in.kind == Class:
		s.Name, s.Kind = word, Constant
		value := strings.TrimLeft(rest[len(word):], " \t")
		assigned := strings.HasPrefix(value, "=") && !strings.HasPrefix(value, "==") ||
			strings.HasPrefix(value, ":") && strings.Contains(value, "=")
		if assigned && upper(word) {
			r.out.add(s)
		}
		return
	default:
		return
	}
	r.enter(s, indent)
	if n := len(r.open); n > 0 {
		r.wants = r.open[n-1].symbol
	}
}

// scan follows strings and brackets through a line.
func (r *pythonReader) scan(s string) {
	for i := 0; i < len(s); i++ {
		if r.quote != 0 {
			end := strings.Index(s[i:], strings.Repeat(string(r.quote), 3))
			if end < 0 {
				return
			}
			i += end + 2
			r.quote = 0
			continue
		}
		switch c := s[i]; c {
		case '#':
			return
		case '(', '[', '{':
			r.brackets++
		case ')', ']', '}':
			r.brackets = max(0, r.brackets-1)
		case '"', '\'':
			if strings.HasPrefix(s[i:], strings.Repeat(string(c), 3)) {
				r.quote = c
				i += 2
				continue
			}
			i = skipString(s, i)
		}
	}
	if declares(s) { // a bracket that was never closed must not swallow the rest of the file
		r.brackets = min(r.brackets, 64)
	}
}

// declares reports whether a line begins with def or class.
func declares(s string) bool { return strings.HasPrefix(s, "def ") || strings.HasPrefix(s, "class ") }

// skipString returns the index of the quote that ends the string at i, or of the last byte.
func skipString(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return len(s) - 1
}
