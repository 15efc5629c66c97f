package textcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of values that are read.
const maxDepth = 64

// gemmaQuote is what Gemma writes around strings.
const gemmaQuote = `<|"|>`

// valueEnd returns where a value that begins with a bracket ends; -1 = not within the text. It looks at brackets and
// strings only, so that it also finds the end of a value that no parser takes.
func valueEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			n := stringEnd(text[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '<':
			if strings.HasPrefix(text[i:], gemmaQuote) {
				end := strings.Index(text[i+len(gemmaQuote):], gemmaQuote)
				if end < 0 {
					return -1
				}
				i += 2*len(gemmaQuote) + end - 1
			}
		}
	}
	return -1
}

// stringEnd returns the length of a quoted string with its quotes; -1 = it does not end.
func stringEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return -1
}

var errNoValue = errors.New("not a value")

// literal reads values in the notations that models mix: JSON, Python, and Gemma's. Beyond JSON, strings
// may have single quotes or Gemma's and contain line breaks, keys need no quotes, a comma may be last, and
// True, False and None are known.
type literal struct {
	text  string
	at    int
	depth int
	loose bool // a word without quotes is a string
}

// readValue returns a value as JSON, and how much of the text it took.
func readValue(text string, loose bool) (json.RawMessage, int, error) {
	r := &literal{text: text, loose: loose}
	var out bytes.Buffer
	if err := r.readValue(&out); err != nil {
		return nil, 0, err
	}
	return out.Bytes(), r.at, nil
}

func (r *literal) skipBlanks() { r.at = afterBlanks(r.text, r.at) }

// nextByte skips blanks and returns the next byte; 0 = the end.
func (r *literal) nextByte() byte {
	if r.skipBlanks(); r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *literal) readValue(out *bytes.Buffer) error {
	if r.depth++; r.depth > maxDepth {
		return errNoValue
	}
	defer func() { r.depth-- }()
	switch c := r.nextByte(); {
	case c == '{':
		return r.readObject(out)
	case c == '[' || c == '(':
		return r.readList(out)
	case c == '"' || c == '\'' || strings.HasPrefix(r.text[r.at:], gemmaQuote):
		s, err := r.readQuoted()
		if err != nil {
			return err
		}
		return writeString(out, s)
	case c == 0:
		return errNoValue
	default:
		return r.readWord(out)
	}
}

func writeString(out *bytes.Buffer, s string) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err //nolint:wrapcheck // every string can be encoded
	}
	out.Truncate(out.Len() - 1) // the line feed
	return nil
}

func (r *literal) readObject(out *bytes.Buffer) error {
	r.at++
	out.WriteByte('{')
	for n := 0; ; n++ {
		c := r.nextByte()
		if c == '}' {
			r.at++
			out.WriteByte('}')
			return nil
		}
		if n > 0 {
			if c != ',' {
				return errNoValue
			}
			r.at++
			if r.nextByte() == '}' {
				continue
			}
			out.WriteByte(',')
		}
		if err := r.readPair(out, ":"); err != nil {
			return err
		}
	}
}

// readPair reads a key, one of some separators, and a value.
func (r *literal) readPair(out *bytes.Buffer, separators string) error {
	r.skipBlanks()
	key, err := r.readKey()
	if err != nil {
		return err
	}
	if err := writeString(out, key); err != nil {
		return err
	}
	if c := r.nextByte(); c == 0 || strings.IndexByte(separators, c) < 0 {
		return errNoValue
	}
	r.at++
	out.WriteByte(':')
	return r.readValue(out)
}

func (r *literal) readKey() (string, error) {
	rest := r.text[r.at:]
	if rest != "" && (rest[0] == '"' || rest[0] == '\'' || strings.HasPrefix(rest, gemmaQuote)) {
		return r.readQuoted()
	}
	n := nameLength(rest)
	if n == 0 {
		return "", errNoValue
	}
	r.at += n
	return rest[:n], nil
}

func (r *literal) readList(out *bytes.Buffer) error {
	end := byte(']')
	if r.text[r.at] == '(' {
		end = ')'
	}
	r.at++
	out.WriteByte('[')
	for n := 0; ; n++ {
		c := r.nextByte()
		if c == end {
			r.at++
			out.WriteByte(']')
			return nil
		}
		if n > 0 {
			if c != ',' {
				return errNoValue
			}
			r.at++
			if r.nextByte() == end {
				continue
			}
			out.WriteByte(',')
		}
		if err := r.readValue(out); err != nil {
			return err
		}
	}
}

// readQuoted reads a string in any of the quotes.
func (r *literal) readQuoted() (string, error) {
	rest := r.text[r.at:]
	if inner, ok := strings.CutPrefix(rest, gemmaQuote); ok {
		s, _, closed := strings.Cut(inner, gemmaQuote)
		if !closed {
			return "", errNoValue
		}
		r.at += len(s) + 2*len(gemmaQuote)
		return s, nil
	}
	n := stringEnd(rest)
	if n < 0 {
		return "", errNoValue
	}
	r.at += n
	return unquoteText(rest[1 : n-1]), nil
}

// unquoteText decodes the escapes of JSON and Python. An unknown one stays as it is.
func unquoteText(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var whole string
	if json.Unmarshal([]byte(`"`+s+`"`), &whole) == nil {
		return whole
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case 'u':
			n := escapesLength(s[i-1:])
			var text string
			if n == 0 || json.Unmarshal([]byte(`"`+s[i-1:i-1+n]+`"`), &text) != nil {
				out.WriteString(`\u`)
				continue
			}
			out.WriteString(text)
			i += n - 2
		case '\\', '"', '\'', '/':
			out.WriteByte(s[i])
		default:
			out.WriteByte('\\')
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// escapesLength returns the length of the \uXXXX escapes that a text begins with.
func escapesLength(s string) int {
	n := 0
	for len(s) >= n+6 && s[n] == '\\' && s[n+1] == 'u' && isHexadecimal(s[n+2:n+6]) {
		n += 6
	}
	return n
}

func isHexadecimal(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// readWord reads a number, a constant, or, if that is allowed, a string without quotes.
func (r *literal) readWord(out *bytes.Buffer) error {
	rest := r.text[r.at:]
	n := strings.IndexAny(rest, ",}])\n")
	if n < 0 {
		n = len(rest)
	}
	word := strings.TrimSpace(rest[:n])
	r.at += n
	switch word {
	case "true", "True":
		out.WriteString("true")
	case "false", "False":
		out.WriteString("false")
	case "null", "None":
		out.WriteString("null")
	default:
		switch {
		case word != "" && json.Valid([]byte(word)):
			out.WriteString(word)
		case r.loose && word != "":
			return writeString(out, word)
		default:
			return errNoValue
		}
	}
	return nil
}

// nameLength returns how much of a text is the name of a tool or of a parameter.
func nameLength(text string) int {
	n := 0
	for n < len(text) {
		c := text[n]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_':
			n++
		case n > 0 && (c == '-' || c == '.'):
			n++
		case c >= utf8.RuneSelf:
			n++
		default:
			return n
		}
	}
	return n
}

// readKeyword reads key=value as a member of an object.
func (r *literal) readKeyword() ([]byte, error) {
	var out bytes.Buffer
	if err := r.readPair(&out, "=:"); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
