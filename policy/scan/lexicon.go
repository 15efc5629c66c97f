package scan

import (
	_ "embed" // vocabulary.txt
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed vocabulary.txt
var vocabularyText string

// readVocabulary returns the words of each concept; for the notation see expand.
func readVocabulary(text string, concepts map[string]concept) (map[concept][]string, error) {
	list := map[concept][]string{}
	err := eachRow("vocabulary.txt", text, func(_ int, row string) error {
		name, words, ok := strings.Cut(row, ": ")
		if !ok {
			return errNoColon
		}
		c := concepts[name]
		if c == 0 {
			return fmt.Errorf("%q is no concept of orders.txt", name)
		}
		list[c] = append(list[c], words)
		return nil
	})
	return list, err
}

// word is one entry of the vocabulary, folded like texts.
type word struct {
	text    string
	concept concept
	stem    bool // any ending may follow
	loose   bool // from a script without blanks or one that joins words
}

// words returns the vocabulary. With glued, the words contain no blanks.
func words(glued bool) []word {
	var list []word
	vocabulary, _ := readVocabulary(vocabularyText, orderTable().concepts)
	for c, rows := range vocabulary {
		for _, row := range rows {
			for _, text := range expand(row) {
				for _, form := range forms(text) {
					list = append(list, entry(form, c, glued))
				}
			}
		}
	}
	return list
}

// forms returns the forms of a word that folding does not unify: Cyrillic capitals resemble other Latin letters than
// small ones.
func forms(text string) []string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		first, size := utf8.DecodeRuneInString(text)
		return []string{text, string(unicode.ToUpper(first)) + text[size:], strings.ToUpper(text)}
	}
	return []string{text}
}

// entry folds a word.
func entry(text string, c concept, glued bool) word {
	f := fold(text, false)
	w := word{text: level(strings.ToLower(f.text)), concept: c}
	w.text, w.stem = strings.CutSuffix(w.text, "*")
	w.text = strings.Join(strings.Fields(w.text), " ")
	first, _ := utf8.DecodeRuneInString(w.text)
	w.loose = first >= 0x590
	if glued {
		w.text = strings.ReplaceAll(w.text, " ", "")
	}
	return w
}

// letterByte reports whether c belongs to a word: a letter, a digit, or a byte of a non-ASCII letter.
func letterByte(c byte) bool { return c != '_' && wordByte(c) || c >= utf8.RuneSelf }

// level replaces what joins words by blanks, keeping the length.
func level(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return ' '
		}
		return r
	}, text)
}
