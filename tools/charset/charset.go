// Package charset says in which encoding a text is, decodes it and encodes it again.
package charset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// Encoding is how a text is written. The zero value is UTF-8 without a byte order mark.
type Encoding struct {
	// Name is the name for people, such as "UTF-16LE" or "windows-1252"; "" = UTF-8.
	Name string
	// Guessed: nothing but the bytes says so. Unsure: they would fit others as well, and letters beyond ASCII may be
	// wrong.
	Guessed, Unsure bool

	mark  string // the byte order mark
	codec encoding.Encoding
}

// The byte order marks (Unicode Standard, section 23.8).
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
	markUTF32LE = "\xff\xfe\x00\x00"
	markUTF32BE = "\x00\x00\xfe\xff"
)

// marks are tried in order: that of UTF-32 begins with that of UTF-16.
var marks = []Encoding{
	{Name: "UTF-32LE", mark: markUTF32LE, codec: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{Name: "UTF-32BE", mark: markUTF32BE, codec: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{Name: "UTF-16LE", mark: markUTF16LE, codec: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{Name: "UTF-16BE", mark: markUTF16BE, codec: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	{mark: markUTF8},
}

const (
	// confident is from where on the statistics are believed, from 0 to 1. Below it they were wrong in the table of the
	// tests more often than right.
	confident = 0.8
	// enough is how many bytes of a text the statistics see, beginning with the line of the first that is not ASCII. They
	// are slow: a millisecond a kibibyte.
	enough = 4 << 10
)

// Detect says in which encoding a text is, judging by its beginning: by its byte order mark, else as UTF-8, else by
// statistics, else as windows-1252, which most other text is (the last resort of HTML, WHATWG Encoding). whole says that
// head is all of it. ok is false for what mostly is no text.
func Detect(head []byte, whole bool) (e Encoding, ok bool) {
	for i := range marks {
		if bytes.HasPrefix(head, []byte(marks[i].mark)) {
			return marks[i], true
		}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return unmarkedUTF16(head)
	}
	if !whole {
		head = head[:WholeRunes(head)]
	}
	if utf8.Valid(head) {
		return Encoding{}, true
	}
	m := http.DetectContentType(head)
	if countControls(head) > len(head)/64 || !strings.HasPrefix(m, "text/") && m != "application/octet-stream" {
		return Encoding{}, false
	}
	return guessEncoding(head), true
}

// unmarkedUTF16 recognises text without a byte order mark: every second byte of Latin text is zero.
func unmarkedUTF16(head []byte) (Encoding, bool) {
	if len(head) < 8 {
		return Encoding{}, false
	}
	var zero [2]int
	for i, b := range head {
		if b == 0 {
			zero[i%2]++
		}
	}
	half := len(head) / 2
	e := Encoding{Guessed: true}
	switch {
	case zero[1] > half*3/4 && zero[0] <= half/8:
		e.Name, e.codec = "UTF-16LE", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case zero[0] > half*3/4 && zero[1] <= half/8:
		e.Name, e.codec = "UTF-16BE", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	default:
		return Encoding{}, false
	}
	return e, true
}

// countControls counts the bytes that do not occur in text.
func countControls(head []byte) (n int) {
	for _, b := range head {
		if (b < 0x20 && !strings.ContainsRune("\n\r\t\f\b\x1b", rune(b))) || b == 0x7f {
			n++
		}
	}
	return n
}

// guessEncoding decides by statistics.
func guessEncoding(head []byte) Encoding {
	at := bytes.IndexFunc(head, func(r rune) bool { return r >= utf8.RuneSelf })
	line := head[1+bytes.LastIndexByte(head[:at], '\n'):]
	r := chardet.Detect(line[:min(len(line), enough)])
	if codec := byName(r.Encoding); codec != nil && r.Confidence >= confident && decodesCleanly(codec, head) {
		name, err := ianaindex.MIME.Name(codec)
		if err != nil {
			name = r.Encoding
		}
		return Encoding{Name: name, Guessed: true, codec: codec}
	}
	return Encoding{Name: "windows-1252", Guessed: true, Unsure: true, codec: charmap.Windows1252}
}

// byName finds a codec by what the statistics call it; nil = there is none.
func byName(name string) encoding.Encoding {
	if codec, err := htmlindex.Get(name); err == nil {
		return codec
	}
	if codec, err := ianaindex.IANA.Encoding(name); err == nil {
		return codec
	}
	return nil
}

// decodesCleanly reports whether a text, whose last character may be incomplete, is one of an encoding.
func decodesCleanly(codec encoding.Encoding, head []byte) bool {
	text, err := codec.NewDecoder().Bytes(head)
	return err == nil && strings.Count(strings.TrimSuffix(string(text), "\uFFFD"), "\uFFFD") == 0
}

// WholeRunes returns the length of a text in UTF-8 without an incomplete character at its end.
func WholeRunes(text []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		b := text[len(text)-i]
		if utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-i:]) {
				return len(text) - i
			}
			break
		}
	}
	return len(text)
}

// IsUTF8 reports whether a text is UTF-8, with or without a byte order mark.
func (e *Encoding) IsUTF8() bool { return e.codec == nil }

// Marked reports whether a text begins with a byte order mark.
func (e *Encoding) Marked() bool { return e.mark != "" }

// Note says in words for a model or a person what was assumed; "" for UTF-8.
func (e *Encoding) Note() string {
	switch {
	case e.IsUTF8():
		return ""
	case e.Unsure:
		return "not UTF-8, read as " + e.Name + ": letters beyond ASCII may be wrong"
	case e.Guessed:
		return "not UTF-8, read as " + e.Name + ", judging by its bytes"
	}
	return "read as " + e.Name
}

// Decode returns the text of raw, without a byte order mark. What is no character becomes U+FFFD.
func (e *Encoding) Decode(raw []byte) string {
	raw = bytes.TrimPrefix(raw, []byte(e.mark))
	if e.codec == nil {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	text, _ := e.codec.NewDecoder().Bytes(raw) // a decoder replaces what it cannot read
	return string(text)
}

// Reader returns the text that r reads, without a byte order mark. What is no character becomes U+FFFD, except in
// UTF-8.
func (e *Encoding) Reader(r io.Reader) io.Reader {
	r = &unmarked{r: r, mark: []byte(e.mark)}
	if e.codec == nil {
		return r
	}
	return transform.NewReader(r, e.codec.NewDecoder())
}

// unmarked leaves out a byte order mark.
type unmarked struct {
	r    io.Reader
	mark []byte
}

// Read implements io.Reader.
func (u *unmarked) Read(p []byte) (int, error) {
	if n := len(u.mark); n > 0 {
		u.mark = nil
		if _, err := io.ReadFull(u.r, make([]byte, n)); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return 0, err
		}
	}
	return u.r.Read(p)
}

// Encode returns a text as it is written in this encoding, with its byte order mark. The error names the first character
// that the encoding does not have.
func (e *Encoding) Encode(text string) (string, error) {
	if e.codec == nil {
		return e.mark + text, nil
	}
	raw, err := e.codec.NewEncoder().String(text)
	if err == nil {
		return e.mark + raw, nil
	}
	for _, r := range text {
		if _, err := e.codec.NewEncoder().String(string(r)); err != nil {
			return "", fmt.Errorf("%s has no %q", e.Name, r)
		}
	}
	return "", fmt.Errorf("not a text of %s: %w", e.Name, err)
}
