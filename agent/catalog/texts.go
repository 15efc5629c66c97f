package catalog

import (
	"strings"
	"unicode/utf8"
)

// Stems splits a text into the stems by which texts are compared, in their order; stop words are left out. Of a text of
// more than 8 KiB only the beginning counts.
func Stems(text string) []string {
	list, _ := splitTerms(text)
	return list
}

// Texts ranks texts by words (Okapi BM25). Immutable.
type Texts struct{ index *wordIndex }

// NewTexts returns an index of texts.
func NewTexts(texts []string) *Texts {
	docs := make([]document, len(texts))
	for i, text := range texts {
		docs[i] = newDocument("", "", addInflected(text), nil)
	}
	return &Texts{newWordIndex(docs)}
}

// Rank scores every text by the words of a query, from 0 to 1, in the order in which they were given.
func (t *Texts) Rank(query string) []float32 {
	list, _ := splitTerms(addInflected(query))
	scores, _ := t.index.rankDocuments(list)
	return scores
}

// headRunes is the length of the beginning by which long words match, whatever their ending: "редактор" and
// "редактора", "Abteilung" and "Abteilungen".
const headRunes = 5

// addInflected adds the beginnings of long words to a text, because the stems are those of English.
func addInflected(text string) string {
	if len(text) > maxTermText/2 {
		text = strings.ToValidUTF8(text[:maxTermText/2], "")
	}
	var b strings.Builder
	b.WriteString(text)
	for _, word := range Stems(text) {
		if n := utf8.RuneCountInString(word); n > headRunes {
			b.WriteByte(' ')
			b.WriteString(string([]rune(word)[:headRunes]))
		}
	}
	return b.String()
}
