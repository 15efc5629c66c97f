package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Fragment is a string of one event of a stream. Servers cut text between tokens, and some tokens end within a
// character: between the two escapes of a surrogate pair ("\ud83d", then "\ude00"), or between two bytes of UTF-8. Text
// is what is whole; a Joiner puts the rest together. Anything but a string decodes to an empty Fragment with Raw set.
type Fragment struct {
	Text string
	Raw  json.RawMessage // a value that is not a string: an object, a list, a number; nil = a string, null or nothing

	first string // undecoded: the second half of a character, which belongs before Text
	last  string // undecoded: the first half of a character, which belongs after Text
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fragment) UnmarshalJSON(data []byte) error {
	*f = Fragment{}
	if len(data) < 2 || data[0] != '"' {
		if string(data) != "null" {
			f.Raw = bytes.Clone(data)
		}
		return nil
	}
	inner := data[1 : len(data)-1]
	n := secondHalf(inner)
	f.first, inner = string(inner[:n]), inner[n:]
	n = firstHalf(inner)
	f.last, inner = string(inner[len(inner)-n:]), inner[:len(inner)-n]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		f.Text = string(inner)
		return nil
	}
	if len(inner) == len(data)-2 {
		return json.Unmarshal(data, &f.Text) //nolint:wrapcheck // the caller names what it decodes
	}
	f.Text = decodeInner(string(inner))
	return nil
}

// secondHalf returns the length of the second half of a character at the beginning of a string's source.
func secondHalf(s []byte) int {
	if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' && s[2]|0x20 == 'd' && s[3]|0x20 >= 'c' && s[3]|0x20 <= 'f' {
		return 6
	}
	n := 0
	for n < len(s) && n < utf8.UTFMax-1 && s[n]&0xC0 == 0x80 {
		n++
	}
	return n
}

// firstHalf returns the length of the first half of a character at the end of a string's source.
func firstHalf(s []byte) int {
	if n := len(s); n >= 6 {
		e := s[n-6:]
		high := e[0] == '\\' && e[1] == 'u' && e[2]|0x20 == 'd' &&
			(e[3] == '8' || e[3] == '9' || e[3]|0x20 == 'a' || e[3]|0x20 == 'b')
		slashes := 0
		for i := n - 7; i >= 0 && s[i] == '\\'; i-- {
			slashes++
		}
		if high && slashes%2 == 0 {
			return 6
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		c := s[len(s)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// decodeInner decodes the source of a string without its quotes. What cannot be decoded becomes U+FFFD.
func decodeInner(source string) string {
	var text string
	if json.Unmarshal([]byte(`"`+source+`"`), &text) != nil {
		return string(utf8.RuneError)
	}
	return text
}

// Joiner joins the fragments of one text. The zero value is ready for use; it is for one goroutine.
type Joiner struct{ half string }

// Join returns the text of the next fragment. Half a character at its end is held back until the next one.
func (j *Joiner) Join(f *Fragment) string {
	if j.half == "" && f.first == "" && f.last == "" {
		return f.Text
	}
	if f.Text == "" && f.first == "" && f.last == "" && f.Raw == nil { // empty: the other half is still to come
		return ""
	}
	source := j.half + f.first
	j.half = ""
	if source != "" && f.Text == "" && f.last == "" && source[0] != '\\' && !utf8.FullRuneInString(source) {
		j.half = source
		return ""
	}
	text := f.Text
	if source != "" {
		text = decodeInner(source) + text
	}
	j.half = f.last
	return text
}

// Rest returns what stands for half a character at the end of the text.
func (j *Joiner) Rest() string {
	if j.half == "" {
		return ""
	}
	j.half = ""
	return string(utf8.RuneError)
}
