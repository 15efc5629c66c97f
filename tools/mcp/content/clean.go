package content

import (
	"strings"
	"unicode/utf8"
)

// maxControl limits the text of a control string, such as a window title, so that an unfinished one does not hide the
// rest of a result.
const maxControl = 4096

// Clean makes foreign text safe to show: it replaces invalid UTF-8 by U+FFFD, converts line ends to newlines, and drops
// terminal control sequences (ECMA-48) and control characters except tab and newline. Clean is idempotent.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, control) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case !control(r):
			b.WriteString(text[i : i+n])
		case r == '\r':
			if !strings.HasPrefix(text[i+1:], "\n") {
				b.WriteByte('\n')
			}
		case r == 0x1B:
			n = escape(text[i:])
		case r >= 0x80: // the one-character form of ESC and a letter
			n = sequence(byte(r-0x40), text[i+n:], n)
		}
		i += n
	}
	return b.String()
}

// control reports whether r is a control character that Clean has to handle: C0 except tab and newline, DEL, C1.
func control(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' || r >= 0x7F && r <= 0x9F
}

// escape returns the length of the sequence that begins with the ESC at the start of s.
func escape(s string) int {
	if len(s) == 1 {
		return 1
	}
	switch c := s[1]; {
	case c >= 0x20 && c <= 0x2F:
		n := 1 + span(s[1:], 0x20, 0x2F)
		if span(s[n:], 0x30, 0x7E) > 0 {
			n++
		}
		return n
	case c >= 0x30 && c <= 0x7E:
		return sequence(c, s[2:], 2)
	}
	return 1
}

// sequence returns the length of a sequence, including its introducer, which length already counts.
func sequence(introducer byte, rest string, length int) int {
	switch introducer {
	case '[': // parameters, intermediates, one final byte
		n := span(rest, 0x30, 0x3F)
		n += span(rest[n:], 0x20, 0x2F)
		if span(rest[n:], 0x40, 0x7E) > 0 {
			n++
		}
		return length + n
	case ']', 'P', 'X', '^', '_': // a control string, up to BEL or ST
		return length + controlString(rest[:min(len(rest), maxControl)])
	}
	return length
}

// span counts the leading bytes of s that are in the range first to last.
func span(s string, first, last byte) int {
	n := 0
	for n < len(s) && s[n] >= first && s[n] <= last {
		n++
	}
	return n
}

// controlString returns the length of a control string with its terminator; 0 when it has none.
func controlString(s string) int {
	end, terminator := 0, 0
	for _, t := range []string{"\a", "\x1b\\", "\u009c"} {
		if i := strings.Index(s, t); i >= 0 && (terminator == 0 || i < end) {
			end, terminator = i, len(t)
		}
	}
	return end + terminator
}

// cutText shortens valid text to at most limit bytes.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// cutRunes shortens text to at most limit characters and marks the cut with an ellipsis.
func cutRunes(s string, limit int) string {
	n, last := 0, 0
	for i := range s {
		if n == limit-1 {
			last = i
		}
		if n == limit {
			return s[:last] + "…"
		}
		n++
	}
	return s
}
