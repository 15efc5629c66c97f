// Package render turns Markdown of models into Telegram messages: plain text plus formatting entities. Entities need no
// escaping, so Telegram can never refuse a message with "can't parse entities". All offsets and lengths are UTF-16 code
// units, the unit of the Bot API.
package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

const (
	// MaxLength is the maximum length of one message's text in UTF-16 units. Telegram says 4096 "characters" and leaves
	// the unit open; UTF-16 is safe under every reading.
	MaxLength = 4096
	// MaxEntities is how many entities Telegram shows in one message; it silently
	// ignores the rest.
	MaxEntities = 100

	// maxWeight limits the size of all entities of a message in bytes. Telegram answers ENTITIES_TOO_LONG at about 9500
	// (tdlib/telegram-bot-api issue 165).
	maxWeight = 8500
	// entityWeight is the size of one entity without its URL and language.
	entityWeight = 24

	ellipsis    = "…"
	replacement = "\uFFFD"
)

// Entity is one formatted part of a message (Bot API MessageEntity).
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"` // UTF-16 units from the start of the text
	Length   int    `json:"length"` // UTF-16 units, never 0
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// Message is the text and formatting of one Telegram message.
type Message struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities"` // never nil, sorted by offset, outer before inner
}

// Markdown renders src and splits it into messages of at most MaxLength units and MaxEntities entities. No message is
// empty; blank input gives an empty list. It never fails: what is not Markdown is text. Single line breaks are kept,
// because models use them as line breaks in chats. Safe for concurrent use.
func Markdown(src string) []Message {
	return Folding{Quotes: defaultQuotes}.Markdown(src)
}

// Plain splits text into messages without any formatting, with the limits of Markdown.
func Plain(text string) []Message {
	var doc document
	doc.append(clean(normalize(text)), style{})
	return doc.split()
}

// Length returns the length of s in UTF-16 units. A byte that is not UTF-8 counts as one, like the replacement
// character that JSON has for it.
func Length(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// Cut shortens s to at most limit UTF-16 units and marks the cut with "…", which is
// part of the limit. It cuts between user-perceived characters where it can, never
// inside a surrogate pair.
func Cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, replacement)
	switch {
	case limit <= 0:
		return ""
	case len(s) <= limit || Length(s) <= limit:
		return s
	case limit == 1:
		return ellipsis
	}
	end := graphemeBefore(s, 0, forward(s, 0, limit-1))
	return strings.TrimRightFunc(s[:end], unicode.IsSpace) + ellipsis
}

// forward returns the byte offset that lies at most units UTF-16 units after start, on a rune boundary.
func forward(s string, start, units int) int {
	for i, r := range s[start:] {
		units--
		if r > 0xFFFF {
			units--
		}
		if units < 0 {
			return start + i
		}
	}
	return len(s)
}

// backward is like forward, but counts from the end of s.
func backward(s string, units int) int {
	i := len(s)
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		units--
		if r > 0xFFFF {
			units--
		}
		if units < 0 {
			break
		}
		i -= size
	}
	return i
}

// graphemeLookahead is how many bytes after a cut are examined to see whether it would split a character.
const graphemeLookahead = 128

// graphemeBefore returns the last grapheme boundary of s in (start, limit], or limit if one grapheme fills the whole
// range.
func graphemeBefore(s string, start, limit int) int {
	stop := min(len(s), limit+graphemeLookahead)
	for stop < len(s) && !utf8.RuneStart(s[stop]) {
		stop++
	}
	best := limit
	it := graphemes.FromString(s[start:stop])
	for it.Next() {
		end := start + it.End()
		if end > limit {
			break
		}
		best = end
	}
	return best
}

// graphemeAfter returns the first grapheme boundary of s at or after pos.
func graphemeAfter(s string, pos int) int {
	start := max(0, pos-graphemeLookahead)
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	it := graphemes.FromString(s[start:])
	for it.Next() {
		if start+it.Start() >= pos {
			return start + it.Start()
		}
	}
	return pos
}

// normalize converts src to valid UTF-8 with \n as the only line end and without NULs.
func normalize(src string) string {
	src = strings.ToValidUTF8(src, replacement)
	if !strings.ContainsAny(src, "\r\x00") {
		return src
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", replacement).Replace(src)
}

// clean replaces what Telegram's server would replace or drop by itself, so that entity offsets and lengths are right
// before and after: control characters become spaces, bidirectional overrides are removed. There, a tab would become
// one space; four keep code readable.
func clean(s string) string {
	if !needsCleaning(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n', r >= ' ' && r < '\u2028', r > '\u202E':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r == 0:
			b.WriteString(replacement)
		case r == '\u2028', r == '\u2029':
			b.WriteByte('\n')
		case r < ' ' && r != '\r':
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func needsCleaning(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' {
			return true
		} else if c == 0xE2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2] >= 0xA8 && s[i+2] <= 0xAE {
			return true
		}
	}
	return false
}

// blank reports whether s shows nothing to a reader; Telegram refuses such texts.
func blank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return true
}
