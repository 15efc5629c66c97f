package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// own are the characters that signs consist of, and those that could be mistaken for them.
const own = "⟨⟩〈〉❬❭⦑⦒⧼⧽《》⟪⟫↩↵⏎⤶"

// punctuation contains characters that look like ASCII punctuation with a meaning in a shell or a path. Typographic
// quotes and dashes are not included: people write them, and see them.
const punctuation = "‐‑‒―−⁃˗˴" + // -
	"⁄∕╱⧸⟋" + "∖⧵⧹﹨╲⟍" + "∣│┃❘❙⏐⎪ǀ∥‖" + // / \ |
	"։׃∶ːܼ܃܄꞉᛬᠄᠃⦂" + "‚¸，、" + "․܁܂꓿⸱" + // : , .
	"∗⁎٭✱✲⚹" + "ʼʹʽˈʻˊˋ´′‵՚׳`‛＇" + "ˮ″‶״〃" + // * ' "
	"ǃ⍟" + "˂ᐸ❮‹" + "˃ᐳ❯›" + "˄ˆ⌃" + "˜∼⁓" + "˳⸰" + // ! < > ^ ~
	"❨⦅﴾❲〔" + "❩⦆﴿❳〕" + "❴❵" + "﹍﹎﹏ˍ" + "᐀゠" + "╋✚➕" + "➖" + "⁚⁝" + "﹟♯" + "ʔɂˀ" // ( ) { } _ = + - : # ?

// sign returns only the code point, for what cannot be seen.
func sign(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }

// alike returns the code point and how it looks.
func alike(r rune) string { return fmt.Sprintf("⟨U+%04X %s⟩", r, norm.NFC.String(string(r))) }

// wide is the punctuation of Chinese, Japanese and Korean, which is normal next to their letters.
const wide = "！（），：；？"

// single shows a character that is not part of a word.
func single(r rune, found *Found) string {
	switch {
	case r == '\t':
		return "␉"
	case r < ' ':
		found.Invisible++
		return string('␀' + r)
	case r == 0x7F:
		found.Invisible++
		return "␡"
	case r < utf8.RuneSelf:
		return string(r)
	case unseen(r) || unicode.Is(unicode.M, r): // a mark without a letter under it
		found.Invisible++
		return sign(r)
	case confusing(r):
		found.Alike++
		return alike(r)
	}
	return string(r)
}

// unseen reports whether a character is invisible: blanks of other widths, controls, joiners, fillers, and characters
// that fonts lack.
func unseen(r rune) bool {
	switch r {
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x16FE4, 0x1D159:
		return true
	}
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) ||
		unicode.In(r, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// confusing reports whether a visible character is easily mistaken for another one, whatever is next to it.
func confusing(r rune) bool {
	if r >= '␀' && r <= 0x243F || strings.ContainsRune(own, r) || strings.ContainsRune(punctuation, r) {
		return true
	}
	if unicode.Is(unicode.Nd, r) && r >= utf8.RuneSelf {
		return true // a digit of another script
	}
	if within(r, joining) {
		return true // judged together with their neighbours
	}
	s := string(r)
	if norm.NFC.String(s) != s {
		return true // the same character as another one
	}
	plain := norm.NFKC.String(s)
	if plain == s || unicode.Is(unicode.No, r) ||
		strings.ContainsFunc(plain, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return oddLatin(r)
	}
	return len(plain) == 1 || unicode.In(r, unicode.L, unicode.Nl)
}

// spans are ranges of characters, first and last.
type spans [][2]rune

// joining contains parts of Hangul syllables, letters of flags, and skin tones.
var joining = spans{{0x1100, 0x11FF}, {0xA960, 0xA97F}, {0xD7B0, 0xD7FF}, {0x1F1E6, 0x1F1FF}, {0x1F3FB, 0x1F3FF}}

// phonetic contains Latin letters for phonetics that look like ordinary ones.
var phonetic = spans{
	{0x0131, 0x0131},
	{0x01C0, 0x01C3},
	{0x0237, 0x0237},
	{0x0250, 0x02AF},
	{0x1D00, 0x1DBF},
	{0xA720, 0xA7FF},
	{0xAB30, 0xAB6F},
	{0x10780, 0x107BA},
	{0x1DF00, 0x1DFFF},
}

func within(r rune, list spans) bool {
	return slices.ContainsFunc(list, func(span [2]rune) bool { return r >= span[0] && r <= span[1] })
}

// oddLatin reports whether a Latin letter looks like an ordinary one.
func oddLatin(r rune) bool {
	return unicode.Is(unicode.Latin, r) && (within(r, phonetic) || strings.ContainsRune("ƅƄƨƧƽƼƿƷʒȢȣꞮɅƐƖƗ", r))
}

// Controls replaces control characters other than tabs and line breaks, and characters that change the direction of
// text, and keeps everything else. It is for long texts of others on a terminal, which would obey such characters.
func Controls(s string) string {
	var b strings.Builder
	var found Found
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, "⟨0x%02X⟩", s[i])
		case r == '\t' || r == '\n':
			b.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			b.WriteString(single(r, &found))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
