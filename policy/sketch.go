package policy

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
