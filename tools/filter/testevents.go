package filter

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// event is a line of go test -json (cmd/test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// decodeLine decodes a line; false = it is not an event.
func (e *event) decodeLine(line string) bool {
	if e.decodeQuick(line) {
		return true
	}
	*e = event{}
	return json.Unmarshal([]byte(line), e) == nil
}

// decodeQuick decodes a line in the exact form of test2json, without Output, which is not needed. Any other form, even
// a valid one, is left to the JSON decoder.
func (e *event) decodeQuick(line string) bool {
	rest, ok := strings.CutPrefix(line, "{")
	for ok {
		var name, value string
		if name, rest, ok = cutQuoted(rest); !ok || hasEscapes(name) || !strings.HasPrefix(rest, ":") {
			return false
		}
		rest = rest[1:]
		switch name {
		case "Action", "Package", "Test":
			if value, rest, ok = cutQuoted(rest); !ok || hasEscapes(value) {
				return false
			}
			e.setField(name, value)
		case "Output", "Time":
			if value, rest, ok = cutQuoted(rest); !ok || !plainEscapes(value) {
				return false
			}
		case "Elapsed":
			number := strings.TrimLeft(rest, "0123456789.")
			if !json.Valid([]byte(rest[:len(rest)-len(number)])) {
				return false
			}
			rest = number
		default:
			return false
		}
		if rest == "}" {
			return true
		}
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return false
}

func (e *event) setField(name, value string) {
	switch name {
	case "Action":
		e.Action = value
	case "Package":
		e.Package = value
	default:
		e.Test = value
	}
}

// cutQuoted splits a JSON string, still encoded, off the beginning of s.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[1:i], s[i+1:], true
		case c == '\\':
			i++
		case c < ' ':
			return "", "", false
		}
	}
	return "", "", false
}

// plainEscapes reports whether the only escapes in a JSON string are those of one character and \u with four digits.
func plainEscapes(s string) bool {
	for i := strings.IndexByte(s, '\\'); i >= 0; {
		switch s = s[i+1:]; { // quoted has made sure that a byte follows
		case strings.IndexByte(`"\/bfnrt`, s[0]) >= 0:
			s = s[1:]
		case s[0] == 'u' && len(s) > 4 && digitOrHex(s[1]) && digitOrHex(s[2]) && digitOrHex(s[3]) && digitOrHex(s[4]):
			s = s[5:]
		default:
			return false
		}
		i = strings.IndexByte(s, '\\')
	}
	return true
}

// hasEscapes reports whether a JSON string contains escapes.
func hasEscapes(s string) bool {
	for i := range len(s) {
		if s[i] == '\\' || s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// id identifies a test of a package.
type id struct{ pkg, test string }

// jsonEvents reports whether a text is the output of go test -json.
func jsonEvents(lines []line) bool {
	n := 0
	for i := range min(len(lines), 20) {
		if looksEvent(lines[i].bodyText()) {
			n++
		}
	}
	return n > 0 && n*2 >= min(len(lines), 20)
}

func looksEvent(s string) bool {
	return strings.HasPrefix(s, `{"`) && strings.Contains(s, `"Action":"`)
}

// countEvent counts an event.
func (c *tally) countEvent(e event) {
	switch {
	case e.Action == "fail":
		c.failed = true
	case e.Action == "pass" && e.Test == "":
		c.packages++
	case e.Action == "pass":
		c.passed++
	case e.Action == "skip" && e.Test == "":
		c.bare++
	}
}

// keepEvents keeps, unchanged, the events of failed tests and packages, and every line that is not an event.
func (t testSummary) keepEvents(j *job) ([]line, Confidence) {
	failed := map[id]bool{}
	list := make([]event, len(j.lines))
	c := tally{}
	for i := range j.lines {
		body := j.lines[i].bodyText()
		if !looksEvent(body) || !list[i].decodeLine(body) {
			list[i] = event{}
			continue
		}
		if e := list[i]; e.Action == "fail" {
			failed[id{e.Package, e.Test}] = true
		}
		c.countEvent(list[i])
	}
	out := make([]line, 0, 64)
	for i, e := range list {
		told := e.Action == "" || e.Action == "fail" || strings.HasPrefix(e.Action, "build-")
		output := e.Action == "output" && failed[id{e.Package, e.Test}] && !eventOK(j.lines[i].bodyText())
		if told || output || j.lines[i].keep {
			out = append(out, j.lines[i])
		}
	}
	if len(out) == len(j.lines) {
		return nil, Fallback
	}
	return append(out, c.summaryLines(j)...), Full
}
