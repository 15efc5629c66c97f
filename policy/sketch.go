package policy

import (
	"slices"

	"github.com/zephbot/zephbot/policy/gram"
)

// sketch is the set of pairs of neighbouring bytes in a text, hashed to 512 bits. A pattern with a pair that is not in
// the sketch of a text cannot match it. This excludes almost every rule without searching the text again.
type sketch [8]uint64

// add adds the pairs of s.
func (k *sketch) add(s string) {
	for i := 1; i < len(s); i++ {
		h := (uint32(s[i-1])<<8 | uint32(s[i])) * 0x9e3779b1 >> 23
		k[h>>6] |= 1 << (h & 63)
	}
}

// lacks reports whether a pair of need is not in k.
func (k *sketch) lacks(need *sketch) bool {
	for i := range k {
		if need[i]&^k[i] != 0 {
			return true
		}
	}
	return false
}

// subject is a text that is matched against many patterns, with its sketch.
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

// first returns the first byte of the text; 0 if it is empty, and other if there is no text.
func (s *subject) first(other byte) byte {
	if s == nil {
		return other
	}
	if s.text == "" {
		return 0
	}
	return s.text[0]
}

// matches is match with a check of the sketch; g must fold.
func (g *Glob) matches(s *subject) bool {
	return !s.has.lacks(&g.need) && g.match(s.text)
}

// haystack is a set of texts, used to exclude patterns before they are matched against each text. It contains each text
// as it is and folded.
type haystack struct {
	all gram.Set
	// wide: a text has letters beyond ASCII.
	wide bool
}

// add adds a text.
func (h *haystack) add(text string) {
	h.all.Add(text)
	upper, wide := cases(text)
	if upper || wide {
		h.all.Add(foldText(text))
	}
	h.wide = h.wide || wide
}

// may reports whether the pattern may match one of the texts.
func (h *haystack) may(g *Glob) bool { return h.all.May(g.grams) }

// mayAny is may for several patterns.
func (h *haystack) mayAny(globs []*Glob) bool { return slices.ContainsFunc(globs, h.may) }
