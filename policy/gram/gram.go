// Package gram tells quickly that a text cannot contain another one: a Set holds the groups of three bytes of a text,
// hashed into a few thousand bits. With hundreds of patterns and long texts this refuses almost all of them without a
// look at the text.
package gram

// Set is the groups of three bytes of some texts. The zero value is empty.
type Set [128]uint64

// maxGrams bounds how many groups of a needle are looked up.
const maxGrams = 12

// Needle is what a text that contains a certain other one has in its Set.
type Needle []uint16

// Of returns the needle of a text; one of less than three bytes is in every Set.
func Of(text string) Needle {
	var n Needle
	for i := 0; i+2 < len(text) && len(n) < maxGrams; i++ {
		n = append(n, hash(text[i], text[i+1], text[i+2]))
	}
	return n
}

// Add puts a text into the set.
func (s *Set) Add(text string) {
	for i := 0; i+2 < len(text); i++ {
		h := hash(text[i], text[i+1], text[i+2])
		s[h>>6] |= 1 << (h & 63)
	}
}

// May reports that a text of the set may contain the one of the needle; false is certain.
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
