// Package gram quickly excludes that a text contains another one. A Set contains all groups of three bytes of a text,
// hashed to a few thousand bits. With hundreds of patterns and long texts, this excludes almost all of them without
// searching the text.
package gram

// Set contains the groups of three bytes of some texts. The zero value is empty.
type Set [128]uint64

// maxGrams limits how many groups of a needle are looked up.
const maxGrams = 12

// Needle is what the Set of every text that contains a certain text includes.
type Needle []uint16

// Of returns the needle of a text. For fewer than three bytes, it is in every Set.
func Of(text string) Needle {
	var n Needle
	for i := 0; i+2 < len(text) && len(n) < maxGrams; i++ {
		n = append(n, hash(text[i], text[i+1], text[i+2]))
	}
	return n
}

// Add adds a text to the set.
func (s *Set) Add(text string) {
	for i := 0; i+2 < len(text); i++ {
		h := hash(text[i], text[i+1], text[i+2])
		s[h>>6] |= 1 << (h & 63)
	}
}

// May reports whether a text in the set may contain the text of the needle. If it returns false, none does.
func (s *Set) May(n Needle) bool {
	for _, h := range n {
		if s[h>>6]&(1<<(h&63)) == 0 {
			return false
		}
	}
	return true
}

func hash(a, b, c byte) uint16 {
	return uint16((uint32(a)<<16 | uint32(b)<<8 | uint32(c)) * 0x9e3779b1 >> 19)
}
