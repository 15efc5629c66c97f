package search

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// spelledOut returns how people write a letter that has no accent to take away; "" = as it is.
func spelledOut(r rune) string {
	switch r {
	case 'ß', 'ẞ':
		return "ss"
	case 'æ', 'Æ':
		return "ae"
	case 'œ', 'Œ':
		return "oe"
	case 'ø', 'Ø':
		return "o"
	case 'ł', 'Ł':
		return "l"
	case 'đ', 'Đ':
		return "d"
	case 'ı':
		return "i"
	case 'ς':
		return "σ"
	}
	return ""
}

// foldText returns a text in the form in which texts are compared: small letters without accents, compatible forms as
// the usual ones. With places it also says of each byte where in the text it comes from.
func foldText(text string, places bool) (folded string, at []int) {
	list := make([]byte, 0, len(text))
	for i, r := range text {
		before := len(list)
		switch {
		case r >= 'A' && r <= 'Z':
			list = append(list, byte(r)+'a'-'A')
		case r < utf8.RuneSelf:
			list = append(list, byte(r))
		default:
			list = appendFolded(list, r)
		}
		for ; places && before < len(list); before++ {
			at = append(at, i)
		}
	}
	return string(list), at
}

// appendFolded adds what a letter is compared as.
func appendFolded(list []byte, r rune) []byte {
	if as := spelledOut(r); as != "" {
		return append(list, as...)
	}
	var letter [utf8.UTFMax]byte
	n := utf8.EncodeRune(letter[:], r)
	parts := norm.NFKD.Properties(letter[:n]).Decomposition()
	if parts == nil {
		parts = letter[:n]
	}
	for len(parts) > 0 {
		r, size := utf8.DecodeRune(parts)
		parts = parts[size:]
		if !isIgnored(r) {
			list = utf8.AppendRune(list, unicode.ToLower(r))
		}
	}
	return list
}

// isIgnored reports whether a character does not count: an accent, a point of Hebrew or Arabic, or what cannot be seen.
// The vowel signs of other scripts are letters.
func isIgnored(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) && unicode.In(r, unicode.Inherited, unicode.Hebrew)
}

// term is a word or a phrase that is looked for.
type term struct {
	text string
	// anywhere: it is of a script without spaces, so that it can begin in the midst of a word
	anywhere bool
}

// Limits of a query.
const (
	mostTerms  = 12
	termLength = 100 // in bytes, of one term
)

// queryParts matches a phrase in quotation marks, or a word.
var queryParts = regexp.MustCompile(`["“”„«»]([^"“”„«»]+)["“”„«»]|[^\s"“”„«»]+`)

// parseQuery returns the terms of a query, each once. It returns none if nothing in it can be looked for.
func parseQuery(text string) (terms []term) {
	known := map[string]bool{}
	for _, part := range queryParts.FindAllStringSubmatch(text, -1) {
		word := part[0]
		if part[1] != "" {
			word = strings.Join(strings.Fields(part[1]), " ")
		}
		word, _ = foldText(strings.TrimFunc(word, func(r rune) bool {
			return unicode.IsPunct(r) || unicode.IsSpace(r)
		}), false)
		if len(word) > termLength {
			word = strings.ToValidUTF8(word[:termLength], "")
		}
		if word == "" || known[word] {
			continue
		}
		known[word] = true
		first, _ := utf8.DecodeRuneInString(word)
		terms = append(terms, term{text: word, anywhere: isUnspaced(first)})
	}
	return terms
}

// isUnspaced reports whether a letter is of a script that puts no spaces between words.
func isUnspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
}

// find returns where a term begins in a folded text, from an offset on; -1 = nowhere. A word is found by how it begins,
// so that its endings do not matter.
func (t term) find(folded string, from int) int {
	for from <= len(folded) {
		i := strings.Index(folded[from:], t.text)
		if i < 0 {
			return -1
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(folded[:i])
		if i == 0 || t.anywhere || isUnspaced(before) || !unicode.IsLetter(before) && !unicode.IsNumber(before) {
			return i
		}
		_, size := utf8.DecodeRuneInString(folded[i:])
		from = i + size
	}
	return -1
}

// matchTerms says which terms occur in a text, a bit for each.
func matchTerms(terms []term, text string) (found uint) {
	folded, _ := foldText(text, false)
	for i, t := range terms {
		if t.find(folded, 0) >= 0 {
			found |= 1 << i
		}
	}
	return found
}

// span is a part of a text, by bytes.
type span struct{ from, to int }

// excerptOf returns the part of a text around the terms that were found, on one line and at most so many characters
// long, and where they are in it.
func excerptOf(text string, terms []term, most int) (part string, hits []span) {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	folded, at := foldText(text, true)
	at = append(at, len(text))
	first := len(text)
	for _, t := range terms {
		for i := t.find(folded, 0); i >= 0; i = t.find(folded, i+len(t.text)) {
			h := span{at[i], endOf(text, at, i+len(t.text))}
			first = min(first, h.from)
			hits = append(hits, h)
		}
	}
	if len(hits) == 0 {
		first = 0
	}
	from, to := excerptBounds(text, first, most)
	part = text[from:to]
	var lead int
	if from > 0 {
		part, lead = "… "+part, len("… ")
	}
	if to < len(text) {
		part += " …"
	}
	inside := hits[:0]
	for _, h := range hits {
		if h.from >= from && h.to <= to {
			inside = append(inside, span{h.from - from + lead, h.to - from + lead})
		}
	}
	return part, joinSpans(inside)
}

// endOf returns the end in the text of what was folded up to an offset: marks that were ignored belong to their letter.
func endOf(text string, at []int, offset int) int {
	last := at[offset-1]
	_, size := utf8.DecodeRuneInString(text[last:])
	end := last + size
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !unicode.Is(unicode.Mn, r) {
			break
		}
		end += size
	}
	return end
}

// excerptBounds returns the bounds of a part of a text of at most so many characters that has the place first in its
// first third; it begins and ends between words where that is possible.
func excerptBounds(text string, first, most int) (from, to int) {
	from = first
	for n := 0; from > 0 && n < most/3; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from > 0 {
		if i := strings.IndexByte(text[from:first], ' '); i >= 0 {
			from += i + 1
		}
	}
	to = from
	for n := 0; to < len(text) && n < most; n++ {
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
	}
	if to < len(text) {
		if i := strings.LastIndexByte(text[from:to], ' '); i > (to-from)/2 {
			to = from + i
		}
	}
	return from, to
}
