package code

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/gram"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// Limits of the words of a body.
const (
	maxBody      = 200 // different words of one symbol
	maxBodyBytes = 32 << 10
	leastBody    = 3 // letters: shorter ones are variables and keywords
)

// symbol is a declaration with the words of its lines.
type symbol struct {
	outline.Symbol
	body string // as Words returns them, each once, separated by spaces; without those of the name and the comment
}

// known is what the index knows about a file.
type known struct {
	symbols []symbol
	grams   *gram.Set // of its text in lower case: most files cannot contain a text that is looked for
}

// learnFile reads what the index knows about a file.
func learnFile(lang outline.Language, content []byte) known {
	k := known{symbols: outlineSymbols(lang, content), grams: &gram.Set{}}
	k.grams.Add(strings.ToLower(string(content[:min(len(content), outline.MaxBytes)])))
	return k
}

// outlineSymbols lists the symbols of a file with the words of their lines. The lines of a symbol inside of another
// one count for the inner one only.
func outlineSymbols(lang outline.Language, content []byte) []symbol {
	list := outline.Parse(lang, content).Symbols
	if len(list) == 0 {
		return nil
	}
	p := newPage(content, file.Stamp{})
	out := make([]symbol, len(list))
	seen := map[string]bool{}
	for i := range list {
		clear(seen)
		s := &list[i]
		for _, known := range []string{s.Name, s.Container, s.Doc} {
			for _, word := range searchWords(known) {
				seen[word] = true
			}
		}
		end := s.End
		if i+1 < len(list) && list[i+1].Start > s.Start && list[i+1].Start <= end {
			end = list[i+1].Start - 1
		}
		out[i] = symbol{*s, bodyWords(p.text(s.Start, end), seen)}
	}
	return out
}

// bodyWords returns the words of a text that are not in seen.
func bodyWords(text string, seen map[string]bool) string {
	var out []string
	splitWords(text[:min(len(text), maxBodyBytes)], func(word string) {
		if len(word) < leastBody || len(word) > maxWord || len(out) == maxBody {
			return
		}
		n := normalWord(strings.ToLower(word))
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	})
	slices.Sort(out)
	return strings.Join(out, " ")
}
