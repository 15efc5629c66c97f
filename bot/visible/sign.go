package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// own are the characters that signs are made of, and those that could be taken for them.
const own = "⟨⟩〈〉❬❭⦑⦒⧼⧽《》⟪⟫↩↵⏎⤶"

// punctuation are characters that look like punctuation of ASCII, which means something to a shell or in a path.
// Typographic quotes and dashes are not listed: people write them, and see them.
const punctuation = "‐‑‒―−⁃˗˴" + // -
	"⁄∕╱⧸⟋" + "∖⧵⧹﹨╲⟍" + "∣│┃❘❙⏐⎪ǀ∥‖" + // / \ |
	"։׃∶ːܼ܃܄꞉᛬᠄᠃⦂" + "‚¸，、" + "․܁܂꓿⸱" + // : , .
	"∗⁎٭✱✲⚹" + "ʼʹʽˈʻˊˋ´′‵՚׳`‛＇" + "ˮ″‶״〃" + // * ' "
	"ǃ⍟" + "˂ᐸ❮‹" + "˃ᐳ❯›" + "˄ˆ⌃" + "˜∼⁓" + "˳⸰" + // ! < > ^ ~
	"❨⦅﴾❲〔" + "❩⦆﴿❳〕" + "❴❵" + "﹍﹎﹏ˍ" + "᐀゠" + "╋✚➕" + "➖" + "⁚⁝" + "﹟♯" + "ʔɂˀ" // ( ) { } _ = + - : # ?

// sign is the code point alone, for what cannot be seen.
func sign(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }

// alike is the code point and how it looks.
func alike(r rune) string { return fmt.Sprintf("⟨U+%04X %s⟩", r, norm.NFC.String(string(r))) }

// wide is the punctuation of Chinese, Japanese and Korean: beside their letters it is what people write.
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
	case unseen(r) || unicode.Is(unicode.M, r): // a mark without a letter of its own under it
		found.Invisible++
		return sign(r)
	case confusing(r):
		found.Alike++
		return alike(r)
	}
	return string(r)
}

// unseen says whether a character leaves no trace of its own: blanks of other widths, controls, joiners, fillers, and
// what fonts do not know.
func unseen(r rune) bool {
	switch r {
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x16FE4, 0x1D159:
		return true
	}
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// confusing says whether a visible character is easily taken for another one, whatever stands beside it.
func confusing(r rune) bool {
	if r >= '␀' && r <= 0x243F || strings.ContainsRune(own, r) || strings.ContainsRune(punctuation, r) {
		return true
	}
	if unicode.Is(unicode.Nd, r) && r >= utf8.RuneSelf {
		return true // a digit of another script
	}
	if within(r, joining) {
		return true // with what is beside them
	}
	s := string(r)
	if norm.NFC.String(s) != s {
		return true // the same character as another one
	}
	plain := norm.NFKC.String(s)
	if plain == s || unicode.Is(unicode.No, r) || strings.ContainsFunc(plain, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return oddLatin(r)
	}
	return len(plain) == 1 || unicode.In(r, unicode.L, unicode.Nl)
}

// spans are ranges of characters, first and last.
type spans [][2]rune

// joining are parts of Hangul syllables, letters of flags, and colours of skin.
var joining = spans{{0x1100, 0x11FF}, {0xA960, 0xA97F}, {0xD7B0, 0xD7FF}, {0x1F1E6, 0x1F1FF}, {0x1F3FB, 0x1F3FF}}

// phonetic are letters of the Latin script that are made for phonetics and look like plain ones.
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

// oddLatin says whether a letter of the Latin script is one that looks like a plain one.
func oddLatin(r rune) bool {
	return unicode.Is(unicode.Latin, r) && (within(r, phonetic) || strings.ContainsRune("ƅƄƨƧƽƼƿƷʒȢȣꞮɅƐƖƗ", r))
}

// Controls shows control characters other than tabs and line breaks, and what changes the direction of text, and leaves
// everything else: for long texts of others on a terminal, which would obey them.
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
