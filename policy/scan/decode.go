package scan

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxDecoded limits how many bytes of one text are decoded.
	maxDecoded = 64 << 10
	// minRun is the minimum length of a run of base64 or hexadecimal digits that is decoded: shorter ones cannot
	// contain an instruction.
	minRun = 32
	// minSpaced is the number of single letters in a row from which they are joined to words.
	minSpaced = 10
)

// Names of rules for encoded and invisible text.
const (
	ruleEncoded = "encoded_orders"
	ruleHidden  = "hidden_text"
)

// rotate applies ROT13.
func rotate(text string) string {
	b := []byte(text)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z':
			b[i] = 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			b[i] = 'A' + (c-'A'+13)%26
		}
	}
	return string(b)
}

// reverse returns a text backwards.
func reverse(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// decoder searches encoded text.
type decoder struct {
	left  int // bytes that may still be decoded
	found []span
}

// inner searches text that was decoded from a span.
func (d *decoder) inner(text string, from span) {
	d.left -= len(text)
	if len(inner(text)) > 0 {
		d.found = append(d.found, from)
	}
}

// decode searches the encodings in a folded text.
func decode(text string) []span {
	d := decoder{left: maxDecoded}
	d.runs(text)
	d.spaced(text)
	d.escapes(text)
	return d.found
}

// alphabet reports whether c is a character of base64 in either variant, which includes the hexadecimal digits.
func alphabet(c byte) bool { return digits64[c] }

var digits64 = func() (table [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		table[c] = true
	}
	return table
}()

// runs decodes base64 and hexadecimal runs. It checks one byte in minRun and goes back from there, so that ordinary
// text costs almost nothing.
func (d *decoder) runs(text string) {
	for at := minRun - 1; at < len(text) && d.left > 0; {
		if !alphabet(text[at]) {
			at += minRun
			continue
		}
		start := at
		for start > 0 && at-start < minRun && alphabet(text[start-1]) {
			start--
		}
		end := at + 1
		for end < len(text) && end-start < d.left && alphabet(text[end]) {
			end++
		}
		if end-start >= minRun {
			d.run(text[start:end], span{start, end})
		}
		at = end + minRun
	}
}

// run decodes one run if the result is text.
func (d *decoder) run(run string, from span) {
	if !strings.ContainsFunc(run, func(r rune) bool {
		return (r < '0' || r > '9') && (unicode.ToLower(r) < 'a' || unicode.ToLower(r) > 'f')
	}) {
		if plain, err := hex.DecodeString(run[:len(run)&^1]); err == nil && readable(plain) {
			d.inner(string(plain), from)
		}
		return
	}
	run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
	run = run[:len(run)-btoi(len(run)%4 == 1)]
	if head, err := base64.RawStdEncoding.DecodeString(run[:minRun/4*4]); err != nil || !readable(head) {
		return
	}
	if plain, err := base64.RawStdEncoding.DecodeString(run); err == nil && readable(plain) {
		d.inner(string(plain), from)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// readable reports whether decoded bytes are text. The last character may be incomplete.
func readable(b []byte) bool {
	odd := 0
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && i+utf8.UTFMax <= len(b) || r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			odd++
		}
		i += size
	}
	return odd*16 <= len(b)
}

// spaced joins separated letters: i g n o r e. It checks five bytes in sixteen.
func (d *decoder) spaced(text string) {
	const stride = 16
	for at := 0; at+stride < len(text) && d.left > 0; at += stride {
		// the only cost for ordinary text
		if w := text[at : at+5]; !(gap[w[1]] && gap[w[3]]) && !(gap[w[2]] && gap[w[4]]) {
			continue
		}
		if !apart(text, at) && !apart(text, at+1) {
			continue
		}
		start := at
		if !apart(text, at) {
			start++
		}
		for start >= 2 && apart(text, start-2) {
			start -= 2
		}
		joined, end := join(text, start)
		if len(joined) >= minSpaced {
			d.inner(joined, span{start, end})
			if strings.Contains(joined, " ") {
				joined = strings.ReplaceAll(joined, " ", "")
			}
			judge(joined, false, true, func(*order, int, int) { d.found = append(d.found, span{start, end}) })
		}
		at = max(at, end-stride)
	}
}

// apart reports whether there are separated single letters at i.
func apart(text string, i int) bool {
	return i+3 < len(text) && between(text[i+1]) && between(text[i+3]) && single(text[i]) && single(text[i+2])
}

func single(c byte) bool  { return letterByte(c) && c < utf8.RuneSelf }
func between(c byte) bool { return gap[c] }

// gap contains the bytes that can separate letters.
var gap = [256]bool{' ': true, '.': true, '-': true, '_': true, '*': true, '|': true}

// join joins separated letters from start; a wider gap becomes a blank.
func join(text string, start int) (joined string, end int) {
	var b strings.Builder
	i := start
	for i < len(text) && single(text[i]) && (i+1 == len(text) || !letterByte(text[i+1])) {
		b.WriteByte(text[i])
		i++
		gap := i
		for i < len(text) && i-gap < 4 && (between(text[i]) || text[i] == '\n') {
			i++
		}
		if i-gap > 1 {
			b.WriteByte(' ')
		}
		if i == gap {
			break
		}
	}
	return strings.TrimSpace(b.String()), i
}

// escapes decodes percent-encoding, \x and \u, and HTML character references, if there are many of them.
func (d *decoder) escapes(text string) {
	const stretch, least = 480, 6
	for _, kind := range [...]struct{ mark, end string }{{"%", ""}, {`\x`, ""}, {`\u00`, ""}, {"&#", ";"}} {
		for at := 0; d.left > 0; {
			i := strings.Index(text[at:], kind.mark)
			if i < 0 {
				break
			}
			at += i
			until := min(len(text), at+stretch)
			if strings.Count(text[at:until], kind.mark) >= least {
				if plain, codes := unescape(text[at:until], kind.mark, kind.end); codes >= least {
					d.inner(plain, span{at, until})
				}
			}
			at = until
		}
	}
}

// unescape replaces codes after a mark, and counts them: two hexadecimal digits, or a number up to end.
func unescape(text, mark, end string) (plain string, codes int) {
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			b.WriteString(text)
			return b.String(), codes
		}
		b.WriteString(text[:i])
		text = text[i+len(mark):]
		size, base := min(2, len(text)), 16
		digits := text[:size]
		if end != "" {
			n := strings.Index(text[:min(len(text), 8)], end)
			if n < 0 {
				continue
			}
			digits, size, base = text[:n], n+len(end), 10
			if rest, found := strings.CutPrefix(strings.ToLower(digits), "x"); found {
				digits, base = rest, 16
			}
		}
		if code, err := strconv.ParseUint(digits, base, 16); err == nil {
			if base == 16 && end == "" {
				b.WriteByte(byte(code))
			} else {
				b.WriteRune(rune(code))
			}
			text = text[size:]
			codes++
		}
	}
}

// The letters of Unicode's tags, which are invisible but read by models; after a black flag they select a region.
const (
	tagFirst  = 0xE0020
	tagEnd    = 0xE007F
	blackFlag = 0x1F3F4
)

const (
	// minTags is the number of tags in a row that count as text. Flags have at most seven, after their base character.
	minTags = 3
	// minUnseen is the number of other invisible characters in a row that count as a message.
	minUnseen = 8
)

// hidden finds text written in invisible characters: tags, long runs of variation selectors or zero-width characters,
// empty letters, and direction overrides, with which a text is displayed differently from what it is.
func hidden(text string) []span {
	var found []span
	start, count, tags, flag := 0, 0, 0, false
	var before rune
	flush := func(end int) {
		if !flag && tags >= minTags || count >= minUnseen {
			found = append(found, span{start, end})
		}
		count, tags = 0, 0
	}
	for i, r := range text {
		switch {
		case r == 0x202D || r == 0x202E:
			flush(i)
			found = append(found, span{i, i + utf8.RuneLen(r)})
		case unseen(r):
			if count == 0 {
				start, flag = i, before == blackFlag
			}
			if count++; within(r, tagFirst, tagEnd) {
				tags++
			}
		case count > 0:
			flush(i)
		}
		before = r
	}
	flush(len(text))
	return found
}

// unseen reports whether text can be hidden in a character. It excludes controls, which terminals write.
func unseen(r rune) bool { return r >= 0x7F && invisible(r) && r != 0xAD }

// Visible drops invisible characters that no script needs: tags except those of flags, empty letters, direction
// overrides, and runs of joiners and selectors that may hide a message. Single joiners, selectors and direction marks
// are kept: emoji and other scripts need them.
func Visible(text string) string {
	if plain(text) == len(text) || !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	var before rune
	row, flag := 0, false
	for _, r := range text {
		switch {
		case !unseen(r):
			row = 0
			flag = r == blackFlag
		case flag && within(r, tagFirst, tagEnd) && row < 7:
			row++
		case needed(r) && row < 2 && !(before == r && r != 0x200C && r != 0x200D):
			row++
		default:
			continue
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// needed reports whether scripts or emoji need an invisible character.
func needed(r rune) bool {
	return within(r, 0x200B, 0x200F) || within(r, 0x2066, 0x2069) || within(r, 0x202A, 0x202C) ||
		within(r, 0xFE00, 0xFE0F) || within(r, 0x180B, 0x180F) || r == 0xFEFF || r == 0x2060 ||
		r == 0xAD || r == 0x34F || r == 0x61C || within(r, 0xE0100, 0xE01EF) || within(r, 0x17B4, 0x17B5)
}
