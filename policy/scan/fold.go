package scan

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// looks maps letters of other scripts to the Latin letters that they resemble.
var looks = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd',
	'ո': 'n', 'ɡ': 'g', 'ı': 'i',
	'ο': 'o', 'α': 'a', 'ε': 'e', 'ι': 'i', 'ν': 'v', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'Α': 'A', 'Β': 'B',
	'Ε': 'E', 'Ι': 'I', 'Ο': 'O',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'Х': 'X',
	'І': 'I', 'Ѕ': 'S', 'Ј': 'J',
	'’': '\'', '‘': '\'', '＜': '<', '＞': '>', '‐': '-', '‑': '-', '–': '-',
}

// folded is the text that the rules search, with a mapping to the original.
type folded struct {
	text  string
	odd   bool   // it contains white space beyond ASCII
	bare  bool   // no invisible characters were dropped from it
	marks []mark // in order; nil = the text is the original, or no mapping was requested
}

// mark says where a byte of the folded text comes from. The bytes after it come from the bytes after that, up to the
// next mark.
type mark struct{ folded, original int }

// at returns the byte offset in the original of the start, or of the end, of a character in the folded text.
func (f *folded) at(i int) int {
	if f.marks == nil {
		return i
	}
	n, exact := slices.BinarySearchFunc(f.marks, i, func(m mark, i int) int { return cmp.Compare(m.folded, i) })
	if !exact {
		n--
	}
	return f.marks[n].original + i - f.marks[n].folded
}

// spaces replaces white space beyond ASCII in a folded text by blanks, keeping the length. Other such characters are
// decomposed to a blank.
var spaces = strings.NewReplacer("\u0085", "  ", "\u1680", "   ", "\u2028", "   ", "\u2029", "   ")

// spaced returns the folded text with only ASCII white space; offsets are the same.
func (f *folded) spaced() string {
	if f.odd {
		return spaces.Replace(f.text)
	}
	return f.text
}

// fold returns the text that the rules search; with back, including the mapping. The middle of a long text is not
// searched.
func fold(text string, back bool) folded {
	if len(text) <= MaxText && plain(text) == len(text) {
		return folded{text: text, bare: true}
	}
	f := folder{back: back}
	f.buf.Grow(min(len(text), MaxText) + utf8.UTFMax)
	if len(text) <= MaxText {
		f.add(text, 0)
	} else {
		f.add(text[:boundary(text, MaxText/2)], 0)
		tail := boundary(text, len(text)-MaxText/2)
		f.add(text[tail:], tail)
	}
	f.mark(len(text))
	return folded{text: f.buf.String(), odd: f.odd, bare: !f.dropped, marks: f.marks}
}

// boundary returns the start of the first character at or after i.
func boundary(text string, i int) int {
	for start := i - 1; start >= max(0, i-utf8.UTFMax+1); start-- {
		if utf8.RuneStart(text[start]) {
			_, size := utf8.DecodeRuneInString(text[start:])
			return max(i, start+size)
		}
	}
	return i
}

// plain returns the length of the prefix of a text that needs no folding.
func plain(text string) int {
	for i := range len(text) {
		if c := text[i]; c-' ' >= 0x7F-' ' && c != '\t' && c != '\n' {
			return i
		}
	}
	return len(text)
}

type folder struct {
	buf  strings.Builder
	odd  bool
	back bool
	// dropped says that an invisible character from lowRunes on was dropped.
	dropped bool
	marks   []mark
}

// mark records where the next byte comes from.
func (f *folder) mark(original int) {
	if !f.back {
		return
	}
	m := mark{f.buf.Len(), original}
	if n := len(f.marks); n > 0 && f.marks[n-1].folded == m.folded {
		f.marks[n-1] = m
		return
	}
	f.marks = append(f.marks, m)
}

// add folds a piece of the text that begins at offset. What does not change is copied at once.
func (f *folder) add(piece string, offset int) {
	known := low()
	from := 0
	f.mark(offset)
	for i := 0; i < len(piece); {
		if c := piece[i]; c < utf8.RuneSelf && known[c].same {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(piece[i:])
		var to form
		switch {
		case r < lowRunes:
			to = known[r]
		case invisible(r): // replaced by nothing
			f.dropped = true
		default:
			to = high(r, piece[i:i+size])
		}
		f.odd = f.odd || r == '\u0085' || r == '\u1680' || r == '\u2028' || r == '\u2029'
		if i += size; to.same {
			continue
		}
		f.buf.WriteString(piece[from : i-size])
		for n := range len(to.text) { // every byte of it comes from the whole character
			f.mark(offset + i - size)
			f.buf.WriteByte(to.text[n])
		}
		from = i
		f.mark(offset + i)
	}
	f.buf.WriteString(piece[from:])
}

// form is the folded form of a character.
type form struct {
	text string
	same bool // the character itself
}

// lowRunes limits the characters with a precomputed form: Latin, Greek, Cyrillic.
const lowRunes = 0x530

// low contains the forms of the characters below lowRunes.
var low = sync.OnceValue(func() *[lowRunes]form {
	var table [lowRunes]form
	for r := range rune(lowRunes) {
		if !invisible(r) {
			text := letters(r)
			table[r] = form{text: text, same: text == string(r)}
		}
	}
	return &table
})

// high returns the form of a character from lowRunes on.
func high(r rune, text string) form {
	_, look := looks[r]
	if !look && r != utf8.RuneError && norm.NFKD.PropertiesString(text).Decomposition() == nil {
		return form{same: true} // including syllables of Hangul, whose parts are not Latin letters
	}
	to := letters(r)
	return form{text: to, same: to == text}
}

// letters decomposes one character (full-width forms, ligatures, mathematical letters, accents) and drops combining
// marks.
func letters(r rune) string {
	return strings.Map(func(r rune) rune {
		switch l, ok := looks[r]; {
		case r >= 0x300 && r <= 0x36F: // combining marks
			return -1
		case ok:
			return l
		case r >= utf8.RuneSelf:
			return unicode.ToLower(r)
		default:
			return r
		}
	}, norm.NFKD.String(string(r)))
}
