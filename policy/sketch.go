package policy

import (
	"slices"

	"github.com/zephbot/zephbot/policy/gram"
)

// sketch is a set of the pairs of neighbouring bytes in a text, hashed into 512
// bits. A pattern whose own pairs are not all in the sketch of a text cannot
// match it; this refuses almost every rule without looking at the text again.
type sketch [8]uint64

// add puts the pairs of s into the sketch.
func (k *sketch) add(s string) {
	for i := 1; i < len(s); i++ {
		h := (uint32(s[i-1])<<8 | uint32(s[i])) * 0x9e3779b1 >> 23
		k[h>>6] |= 1 << (h & 63)
	}
}

// lacks reports that a pair of need is not in k.
func (k *sketch) lacks(need *sketch) bool {
	for i := range k {
		if need[i]&^k[i] != 0 {
			return true
		}
	}
	return false
}

// subject is a text that many patterns are matched with, and its sketch.
type subject struct {
	text string
	has  sketch
}

// newSubject folds the text.
func newSubject(text string) *subject {
	s := &subject{text: foldText(text)}
	s.has.add(s.text)
	return s
}

// matches is match with the sketch before it; g must fold.
func (g *Glob) matches(s *subject) bool {
	return !s.has.lacks(&g.need) && g.match(s.text)
}

// haystack is many texts, in which a pattern is looked for roughly before it is
// matched with each of them.
type haystack struct{ exact, folded gram.Set }

// add puts a text into the hay.
func (h *haystack) add(text string) {
	h.exact.Add(text)
	h.folded.Add(foldText(text))
}

// may reports that the pattern may match one of the texts.
func (h *haystack) may(g *Glob) bool {
	if g.fold {
		return h.folded.May(g.grams)
	}
	return h.exact.May(g.grams)
}

// mayAny is may for several patterns.
func (h *haystack) mayAny(globs []*Glob) bool { return slices.ContainsFunc(globs, h.may) }
