package visible

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// latinLike contains letters of other scripts that look like Latin letters or digits.
const latinLike = "асеорхуѕіјԁһԛԝӏгѵүкАВЕКМНОРСТХУЅІЈԌҮЗӀЬбѴԚԜЕҺԀҽѡпми" + // Cyrillic
	"ονακιρτυχγσωηεϳϲςΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϜͿϺ" + // Greek
	"ոսօհցգզյքԼՏՍՕՅՋԶլՈ" + // Armenian
	"ჿᲿ" + "ഠଠဝ၀๐໐" + "〇ー一丨ノㅇㅣㅡ" // and others

// plain are the scripts that people write and that nobody mistakes for Latin, except for single letters. A word in any
// other script is named.
var plain = []string{
	"Latin", "Han", "Hiragana", "Katakana", "Hangul", "Cyrillic", "Greek", "Armenian", "Georgian", "Bopomofo",
	"Devanagari", "Bengali", "Gurmukhi", "Gujarati",
	"Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan", "Myanmar", "Ethiopic",
	"Khmer", "Mongolian", "Arabic", "Hebrew",
}

// others are the names of the scripts that are not plain, in a fixed order.
var others = slices.DeleteFunc(slices.Sorted(maps.Keys(unicode.Scripts)), func(name string) bool {
	return slices.Contains(plain, name)
})

// eastAsian are scripts that occur next to Latin within a word.
const eastAsian = "Han Hiragana Katakana Hangul Bopomofo"

// script returns the script of a letter or mark.
func script(r rune) string {
	if r < utf8.RuneSelf {
		return "Latin"
	}
	for _, names := range [][]string{plain, others} {
		for _, name := range names {
			if unicode.Is(unicode.Scripts[name], r) {
				return name
			}
		}
	}
	return "Unknown"
}

// wordLength returns how many bytes of letters and marks are at the beginning of the text.
func wordLength(s string) int {
	for i, r := range s {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) || rightToLeft(r) {
			return i
		}
	}
	return len(s)
}

// word shows a run of letters and marks. A letter is judged by its neighbours.
func word(s string, found *Found) []string {
	if ascii(s) {
		return strings.Split(s, "")
	}
	latin, scripts := scriptsOf(s)
	composed := norm.NFC.IsNormalString(s)
	mixed := latin || len(slices.DeleteFunc(slices.Clone(scripts), east)) > 1
	out, judged := letters(s, composed, mixed, found)
	if name := append(scripts, "Common")[0]; judged && !mixed && posing(s, name) {
		found.Alike++
		out = append([]string{"⟨" + name + "⟩"}, out...)
	}
	return out
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// scriptsOf returns the scripts of those letters that are not marked in any case.
func scriptsOf(s string) (latin bool, scripts []string) {
	for _, r := range s {
		if !unicode.IsLetter(r) || confusing(r) || unseen(r) {
			continue
		}
		switch name := script(r); {
		case name == "Latin":
			latin = true
		case name != "Common" && !slices.Contains(scripts, name):
			scripts = append(scripts, name)
		}
	}
	return latin, scripts
}

// letters shows the letters and marks of a word; judged reports whether some letter is not marked.
func letters(s string, composed, mixed bool, found *Found) (out []string, judged bool) {
	var base rune // 0: a mark would have no letter
	marks := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.M, r):
			if marks++; base != 0 && composed && marks <= mostMarks && !unseen(r) && !confusing(r) &&
				script(r) == script(base) {
				out[len(out)-1] += string(r)
				continue
			}
			found.Invisible++
			base = 0
			out = append(out, sign(r))
		case r >= utf8.RuneSelf && (unseen(r) || confusing(r)):
			base = 0
			out = append(out, single(r, found))
		case mixed && script(r) != "Latin" && !east(script(r)):
			base = 0
			found.Alike++
			out = append(out, alike(r))
		default:
			base, marks, judged = r, 0, true
			out = append(out, string(r))
		}
	}
	return out, judged
}

func east(name string) bool { return strings.Contains(eastAsian, name) }

// posing reports whether a word of one foreign script could be read as Latin.
func posing(s, name string) bool {
	if slices.Contains(others, name) {
		return true
	}
	for _, r := range s {
		if unicode.IsLetter(r) && !confusing(r) && !unseen(r) && !strings.ContainsRune(latinLike, r) {
			return false
		}
	}
	return true
}

// rightToLeft reports whether a character is written to the left of the one before it.
func rightToLeft(r rune) bool {
	if r < 0x0590 || unseen(r) || unicode.Is(unicode.M, r) {
		return false
	}
	p, _ := bidi.LookupRune(r)
	c := p.Class()
	return c == bidi.R || c == bidi.AL || c == bidi.AN
}

// span shows words that read from right to left, with single blanks between them, and returns how many bytes they take.
// The Latin letters around them keep their direction from affecting the rest.
func span(s string, found *Found) (int, []string) {
	end, marks := 0, 0
	for i, r := range s {
		switch {
		case rightToLeft(r):
			marks = 0
		case unicode.Is(unicode.M, r) && end == i && !unseen(r) && marks < mostMarks && joins(r):
			marks++
		case r == ' ' && end == i:
			continue
		default:
			return end, []string{framed(s[:end], found)}
		}
		end = i + utf8.RuneLen(r)
	}
	return end, []string{framed(s[:end], found)}
}

// joins reports whether a mark belongs to letters that read from right to left.
func joins(r rune) bool {
	name := script(r)
	return name == "Arabic" || name == "Hebrew" || r >= 0x064B && r <= 0x0655 || r == 0x0670
}

func framed(s string, found *Found) string {
	var b strings.Builder
	b.WriteString("⟨rtl ")
	composed := norm.NFC.IsNormalString(s)
	for _, r := range s {
		switch {
		case unicode.Is(unicode.M, r) && !composed:
			found.Invisible++
			b.WriteString(sign(r))
		case norm.NFKC.String(string(r)) != string(r):
			found.Alike++
			b.WriteString(alike(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + " ltr⟩"
}
