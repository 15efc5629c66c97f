package overflow

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// window is how many bytes around a place are searched for its grapheme cluster. No script has longer clusters.
const window = 1024

// Cut returns the first and the last limit/2 characters (code points) of a text with more than limit, with a line
// between them that says how many are left out; dropped is that number. A shorter text is returned unchanged. Invalid
// UTF-8 is replaced. A character of several code points is left out rather than cut. The result has at most limit plus
// Extra characters.
func Cut(text string, limit int) (shown string, dropped int) {
	text = valid(text)
	if !longer(text, limit) {
		return text, 0
	}
	half := max(limit, 0) / 2
	end, _ := cluster(text, after(text, 0, half))
	_, begin := cluster(text, before(text, half))
	head, tail := text[:end], text[begin:]
	dropped = count(text[end:begin])
	return onNewLine(head, fmt.Sprintf("[… %d characters left out …]\n", dropped)) + tail, dropped
}

// ends returns the beginning and the end of a text with more than most bytes, together at most that long, with a line
// between them that says how many characters are left out; dropped is that number.
func ends(text string, most int) (shown string, dropped int) {
	half := (most - Extra) / 2
	end, begin := half, len(text)-half
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	dropped = count(text[end:begin])
	return onNewLine(text[:end], fmt.Sprintf("[… %d characters left out …]\n", dropped)) + text[begin:], dropped
}

// valid returns text as valid UTF-8.
func valid(text string) string {
	if utf8.ValidString(text) { // equivalent, and much faster
		return text
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// count returns the number of characters of a text, which must be UTF-8: the bytes that begin one.
func count(text string) int {
	n := len(text)
	for i := range len(text) {
		if text[i]&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// longer reports whether a text has more than limit characters.
func longer(text string, limit int) bool {
	return len(text) > limit && after(text, 0, max(limit, 0)) < len(text)
}

// after returns the place n characters after from, or the end.
func after(text string, from, n int) int {
	for i := range text[from:] {
		if n == 0 {
			return from + i
		}
		n--
	}
	return len(text)
}

// before returns the place n characters before the end, or the beginning.
func before(text string, n int) int {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// cluster returns begin and end of the grapheme cluster (UAX #29) that contains the place at; both are at if it is
// between two clusters.
func cluster(text string, at int) (begin, end int) {
	if between(text, at) {
		return at, at
	}
	from, to := around(text, at)
	pos := from
	for it := graphemes.FromString(text[from:to]); it.Next(); {
		next := pos + len(it.Value())
		if next < at {
			pos = next
			continue
		}
		endless := (pos == from && at-from >= window-utf8.UTFMax) || (next == to && to < len(text))
		if next == at || endless {
			break
		}
		return pos, next
	}
	return at, at
}

// around returns the part of text in which the cluster at a place is searched. It begins at a certain cluster boundary,
// or a window before the place.
func around(text string, at int) (from, to int) {
	for from = at; at-from < window && !between(text, from); {
		from--
	}
	for !utf8.RuneStart(text[from]) {
		from++
	}
	for to = min(len(text), at+window); to < len(text) && !utf8.RuneStart(text[to]); {
		to--
	}
	return from, to
}

// between reports whether a place is certainly not within a cluster: an end of the text, or between two ASCII
// characters. Of those, UAX #29 joins only CR LF.
func between(text string, at int) bool {
	if at <= 0 || at >= len(text) {
		return true
	}
	a, b := text[at-1], text[at]
	return a < utf8.RuneSelf && b < utf8.RuneSelf && (a != '\r' || b != '\n')
}

// onNewLine appends a line to a text.
func onNewLine(text, line string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text + line
	}
	return text + "\n" + line
}
