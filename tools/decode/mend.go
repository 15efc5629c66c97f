package decode

import (
	"strings"
	"unicode/utf8"
)

// mend writes arguments that are almost JSON as JSON. It forgives the slips of spelling that leave one reading, and
// nothing else:
//
//   - a Markdown code fence around the whole object;
//   - commas before a closing bracket;
//   - strings in single quotes, keys among them;
//   - line ends and tabs within strings that should have been written \n, \r and \t;
//   - closing brackets that are missing at the very end, after a value that is whole, where nothing could as well
//     belong further out: in {"a":{"b":1,"c":2} the bracket may be missing before "c".
//
// It never invents or drops a value: a text that ends within a string, after a comma or a colon, or in a number that
// may have had more digits is not mended, nor are words without quotes, comments, wrong brackets or anything before and
// after the object. The caller validates what comes out.
func mend(text string) (string, bool) {
	if len(text) > maxBytes || !utf8.ValidString(text) {
		return "", false
	}
	text, ok := unfence(text)
	if !ok || !strings.HasPrefix(text, "{") {
		return "", false
	}
	m := &mender{in: text}
	if !m.value(0, 0) {
		return "", false
	}
	m.space()
	if m.at < len(m.in) || m.missing && m.loose {
		return "", false
	}
	return m.out.String(), true
}

// unfence removes a code fence. A text without one is returned as it is.
func unfence(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "```") {
		return text, true
	}
	first, body, ok := strings.Cut(text, "\n")
	if !ok {
		return "", false
	}
	switch strings.ToLower(strings.TrimSpace(strings.TrimPrefix(first, "```"))) {
	case "", "json", "json5", "jsonc":
	default:
		return "", false
	}
	body, ok = strings.CutSuffix(body, "```")
	return strings.TrimSpace(body), ok
}

// mender reads from in and writes JSON to out. Its methods return false if there is not exactly one interpretation.
type mender struct {
	in      string
	at      int
	out     strings.Builder
	missing bool // a closing bracket was added
	loose   bool // a member of an inner object or list could belong further out, if a bracket before it were missing
}

func (m *mender) space() {
	for m.at < len(m.in) && strings.IndexByte(" \t\r\n", m.in[m.at]) >= 0 {
		m.at++
	}
}

// peek returns the next byte that is not white space; 0 at the end.
func (m *mender) peek() byte {
	m.space()
	if m.at == len(m.in) {
		return 0
	}
	return m.in[m.at]
}

// value reads one value. lists counts the lists around it.
func (m *mender) value(depth, lists int) bool {
	switch c := m.peek(); {
	case depth > maxDepth:
		return false
	case c == '{':
		return m.members('}', depth, lists)
	case c == '[':
		return m.members(']', depth, lists+1)
	case c == '"', c == '\'':
		return m.text()
	default:
		return m.word()
	}
}

// members reads an object or a list. At the end of the text it is closed if the last member is complete.
func (m *mender) members(end byte, depth, lists int) bool {
	m.out.WriteByte(m.in[m.at])
	m.at++
	for n := 0; ; n++ {
		if m.peek() == end {
			break
		}
		if n > 0 {
			m.out.WriteByte(',')
			m.loose = m.loose || end == '}' && depth > 0 || lists > 1
		}
		if end == '}' && !m.key() || !m.value(depth+1, lists) {
			return false
		}
		switch m.peek() {
		case ',':
			m.at++
			if c := m.peek(); c == 0 || c == ',' { // something is missing here
				return false
			}
			continue
		case end:
		case 0: // a missing bracket
			m.out.WriteByte(end)
			m.missing = true
			return true
		default:
			return false
		}
		break
	}
	m.at++
	m.out.WriteByte(end)
	return true
}

// key reads a name and its colon.
func (m *mender) key() bool {
	if c := m.peek(); c != '"' && c != '\'' || !m.text() || m.peek() != ':' {
		return false
	}
	m.at++
	m.out.WriteByte(':')
	return true
}

// text reads a string up to the next quote of its kind. If that is not the end of the string, the caller notices that
// no comma, colon or bracket follows.
func (m *mender) text() bool {
	quote := m.in[m.at]
	m.out.WriteByte('"')
	for m.at++; m.at < len(m.in); m.at++ {
		switch c := m.in[m.at]; {
		case c == quote:
			m.at++
			m.out.WriteByte('"')
			return true
		case c == '\\':
			if !m.escape() {
				return false
			}
		case c == '"':
			m.out.WriteString(`\"`)
		case c == '\n':
			m.out.WriteString(`\n`)
		case c == '\r':
			m.out.WriteString(`\r`)
		case c == '\t':
			m.out.WriteString(`\t`)
		default: // the JSON parser refuses other control characters
			m.out.WriteByte(c)
		}
	}
	return false
}

// escape copies a JSON escape; \' becomes a plain quote. The JSON parser checks the digits of \u.
func (m *mender) escape() bool {
	m.at++
	switch {
	case m.at == len(m.in):
		return false
	case m.in[m.at] == '\'':
		m.out.WriteByte('\'')
	case strings.IndexByte(`"\/bfnrtu`, m.in[m.at]) >= 0:
		m.out.WriteByte('\\')
		m.out.WriteByte(m.in[m.at])
	default:
		return false
	}
	return true
}

// word copies a number, true, false or null; the JSON parser checks its spelling. A number at the very end may be
// incomplete.
func (m *mender) word() bool {
	from := m.at
	for m.at < len(m.in) && strings.IndexByte(" \t\r\n,:{}[]\"'", m.in[m.at]) < 0 {
		m.at++
	}
	word := m.in[from:m.at]
	switch {
	case word == "true", word == "false", word == "null":
	case word == "", m.at == len(m.in):
		return false
	}
	m.out.WriteString(word)
	return true
}
