package chain

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// forgedMark is the rule for marks that imitate ours, if no rule of package scan has matched them.
const forgedMark = "forged_mark"

// defuseMarks replaces the first character of each imitated mark by an entity, so that nothing is lost and nothing
// reads as a mark. It returns their positions.
func defuseMarks(text string) (harmless string, at []int) {
	folded, _ := foldText(text, false)
	if at = findImitations(folded); len(at) == 0 {
		return text, nil
	}
	_, offset := foldText(text, true)
	var b strings.Builder
	last := 0
	for n, i := range at {
		start := offset(i)
		_, size := utf8.DecodeRuneInString(text[start:])
		b.WriteString(text[last:start])
		if folded[i] == '<' {
			b.WriteString("&lt;")
		} else {
			b.WriteString("&#91;")
		}
		last = start + size
		at[n] = start
	}
	b.WriteString(text[last:])
	return b.String(), at
}

// findImitations returns the positions of brackets in a folded text that begin an imitated mark.
func findImitations(folded string) (at []int) {
	if !strings.Contains(folded, "external") && !strings.Contains(folded, "tool") {
		return nil
	}
	for i := range len(folded) {
		if (folded[i] == '<' || folded[i] == '[') && imitatesMark(folded[i], folded[i+1:]) {
			at = append(at, i)
		}
	}
	return at
}

// maxGap is how many bytes of white space within a mark are skipped. No reader takes more for a mark, and without a
// limit the search could take very long.
const maxGap = 64

// imitatesMark reports whether a bracket followed by this text begins a mark that a model may take for ours, or for one
// of a related program: <external-data, </tool-output, [TOOL_OUTPUT::. Spaces and the character between the words do
// not matter. The text is folded.
func imitatesMark(bracket byte, rest string) bool {
	rest = skipSpaces(strings.TrimPrefix(skipSpaces(rest), "/"))
	name, ok := cutJoined(rest, "tool", "output")
	if bracket == '[' {
		return ok && strings.HasPrefix(skipSpaces(name), ":")
	}
	if !ok {
		_, ok = cutJoined(rest, "external", "data")
	}
	return ok
}

// skipSpaces skips spaces. In folded text that is not ASCII, tabs and line ends are spaces.
func skipSpaces(s string) string {
	n := 0
	for n < len(s) && n < maxGap && (s[n] == ' ' || s[n] == '\t' || s[n] == '\n') {
		n++
	}
	return s[n:]
}

// cutJoined removes two words that may be joined by a character.
func cutJoined(s, first, second string) (rest string, ok bool) {
	if s, ok = strings.CutPrefix(s, first); !ok {
		return "", false
	}
	if s != "" && (s[0] == '-' || s[0] == '_') {
		s = s[1:]
	}
	return strings.CutPrefix(s, second)
}

// foldText returns the text in which marks are searched: in lower case, without invisible characters, and with
// look-alike characters replaced. With back, offset maps a byte of the result to its character in the original.
func foldText(text string, back bool) (folded string, offset func(int) int) {
	if needsNoFolding(text) {
		return strings.ToLower(text), func(i int) int { return i }
	}
	known := foldedLow()
	var b strings.Builder
	b.Grow(len(text))
	var offsets []int
	for i, r := range text {
		start := b.Len()
		switch {
		case r < lowRunes:
			b.WriteString(known[r])
		case r >= 0x3400 && r <= 0x9FFF: // ideographs resemble nothing else
			b.WriteString(text[i : i+3])
		default:
			decomposeRune(&b, text[i:], r)
		}
		if !back {
			continue
		}
		for range b.Len() - start {
			offsets = append(offsets, i)
		}
	}
	return b.String(), func(i int) int { return offsets[i] }
}

// lowRunes limits the characters with a precomputed folded form: Latin, Greek, Cyrillic.
const lowRunes = 0x530

// foldedLow contains the folded forms of the characters below lowRunes.
var foldedLow = sync.OnceValue(func() *[lowRunes]string {
	var table [lowRunes]string
	for r := range rune(lowRunes) {
		var b strings.Builder
		switch {
		case r >= utf8.RuneSelf:
			decomposeRune(&b, string(r), r)
		case r == '\t', r == '\n':
			b.WriteByte(' ')
		case r >= ' ' && r != 0x7F: // other control characters are invisible
			b.WriteRune(unicode.ToLower(r))
		}
		table[r] = b.String()
	}
	return &table
})

// decomposeRune writes the compatibility decomposition of a character (NFKD): full-width forms, mathematical letters,
// letters with accents.
func decomposeRune(b *strings.Builder, text string, r rune) {
	parts := norm.NFKD.PropertiesString(text).Decomposition()
	if len(parts) == 0 {
		writePlain(b, r)
		return
	}
	for _, part := range string(parts) {
		writePlain(b, part)
	}
}

// needsNoFolding reports whether the text needs no folding other than case.
func needsNoFolding(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c < ' ' && c != '\t' && c != '\n' || c == 0x7F {
			return false
		}
	}
	return true
}

// writePlain writes what a character looks like.
func writePlain(b *strings.Builder, r rune) {
	if l, ok := looks[r]; ok {
		r = l
	}
	switch {
	case isUnseen(r):
	case unicode.IsSpace(r):
		b.WriteByte(' ')
	case unicode.Is(unicode.Pd, r): // all dashes
		b.WriteByte('-')
	default:
		b.WriteRune(unicode.ToLower(r))
	}
}

// isUnseen reports whether a character is invisible: controls, format characters, combining
// marks, and letters without a glyph.
func isUnseen(r rune) bool {
	switch r {
	case 0x85, 0x2028, 0x2029:
		return false // line ends
	case 0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me) || r >= 0xE0000 && r <= 0xE0FFF
}

// looks maps characters of other scripts to the characters of our marks that they resemble. Characters that Unicode
// itself decomposes (full width, mathematical letters, accents) are not listed.
var looks = foldLookalikes(map[rune]string{
	'<': "‹〈⟨❮ᐸ˂", '/': "⁄∕╱⧸", '[': "⟦【〔❲", ':': "∶ː׃։﹕꞉", '_': "ˍ",
	'a': "аαΑАɑ", 'd': "ԁԀᑯ", 'e': "еεΕЕҽ℮", 'l': "ӏΙІіıӀǀ", 'n': "ոΝпη", 'o': "οоΟОօ", 'p': "рρΡР", 'r': "гᴦɼ",
	't': "τтΤТ", 'u': "υսцUԱ",
	'x': "хχΧХ×", '-': "−‐‑‒–—﹣",
})

func foldLookalikes(of map[rune]string) map[rune]rune {
	table := map[rune]rune{}
	for plain, others := range of {
		for _, r := range others {
			table[r] = plain
		}
	}
	return table
}
