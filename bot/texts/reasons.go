package texts

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/reason"
)

// Reason says why a call needs approval or is refused; "" if there is no reason, or one that this version does not know.
func (w Words) Reason(language string, why reason.Reason) string {
	text := why.In(w.in(language).Reason)
	if text == "" || why.Code == "" {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Note says where a call runs and under which limits; "" if there is nothing to say.
func (w Words) Note(language string, note reason.Reason) string {
	return note.In(w.in(language).Reason)
}

// Said is what a part of the program says about its state or about a mistake, in English, in the reader's language.
// What has no translation, such as the name of a rule, is not changed.
func (w Words) Said(language, english string) string {
	if b := w.in(language); b.reasons != nil {
		if text, ok := b.reasons().say(english); ok {
			return text
		}
	}
	return english
}

// phrases translate sentences with gaps. Safe for concurrent use.
type phrases struct {
	all []phrase
}

type phrase struct {
	match  *regexp.Regexp
	gaps   []string // as in newPhrases
	pieces []string // of the translation, around its gaps
}

var gap = regexp.MustCompile(`\{[-:,+]?\}`)

// gaps are the patterns of what a sentence leaves open.
var gaps = strings.NewReplacer(`\{\}`, `(.+)`, `\{:\}`, `: (.+)`, `\{,\}`, "([^`]+?)", `\{\+\}`, "([^`]+?)", `\{-\}`, `(.+)`)

// newPhrases prepares sentences and their translations, which have the same gaps in the same order. {} stands for words
// that are not changed, {,} and {+} for clauses separated by these signs, which are translated, {:} for ": " and a clause that is
// omitted if it cannot be translated, {-} for words that are omitted. Where several sentences match, the one with the
// most words of its own is meant.
func newPhrases(table map[string]string) *phrases {
	own := func(sentence string) int {
		return len(gap.ReplaceAllString(strings.ReplaceAll(sentence, "{:}", ": "), ""))
	}
	sentences := slices.SortedFunc(maps.Keys(table), func(a, b string) int {
		return cmp.Or(cmp.Compare(own(b), own(a)), cmp.Compare(a, b))
	})
	p := &phrases{}
	for _, sentence := range sentences {
		p.all = append(p.all, phrase{
			match: regexp.MustCompile(`(?s)^` + gaps.Replace(regexp.QuoteMeta(sentence)) + `$`),
			gaps:  gap.FindAllString(sentence, -1), pieces: gap.Split(table[sentence], -1),
		})
	}
	return p
}

// say translates a sentence.
func (p *phrases) say(text string) (string, bool) {
	for i := range p.all {
		ph := &p.all[i]
		found := ph.match.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		var b strings.Builder
		for j, piece := range ph.pieces {
			b.WriteString(piece)
			if j < len(ph.gaps) {
				b.WriteString(p.fill(ph.gaps[j], found[j+1]))
			}
		}
		return b.String(), true
	}
	return "", false
}

// fill returns the content of a gap.
func (p *phrases) fill(mark, words string) string {
	switch mark {
	case "{:}":
		if said, ok := p.say(words); ok {
			return ": " + said
		}
		return ""
	case "{,}":
		return p.list(words, ", ")
	case "{+}":
		return p.list(words, " + ")
	case "{-}":
		return ""
	}
	return words
}

// list translates clauses with a sign between them; a clause may contain the sign.
func (p *phrases) list(words, sign string) string {
	parts, out := strings.Split(words, sign), []string{}
	for len(parts) > 0 {
		n, said := 1, parts[0]
		for m := len(parts); m > 0; m-- {
			if text, ok := p.say(strings.Join(parts[:m], sign)); ok {
				n, said = m, text
				break
			}
		}
		parts, out = parts[n:], append(out, said)
	}
	return strings.Join(out, sign)
}
