package filter

import "math/bits"

// maxStates limits an automaton, so that a state fits in 16 bits.
const maxStates = 60000

// maxLiteral is how many bytes of a word an automaton compares. A longer word is matched by its beginning, which is
// enough for a prefilter.
const maxLiteral = 24

// automaton finds which of a set of words occur in a text, in one pass and ignoring the case of ASCII letters
// (Aho-Corasick, as a table). It is a cheap prefilter for regular expressions. It is immutable.
type automaton struct {
	class [256]uint8
	width int      // number of byte classes
	shift uint     // a row of the table has 1<<shift entries
	next  []uint32 // by row + class: the row of the next state, marked if that state ends a word
	out   []uint64 // bits of the words that end in a state
}

// newAutomaton returns an automaton for the words of up to 64 bits: words[i] set bit i. It returns nil when there are
// too many.
func newAutomaton(words [][]string) *automaton {
	a := &automaton{width: 1}
	for _, list := range words {
		for _, w := range list {
			a.classifyBytes(w)
		}
	}
	edges := [][]uint16{make([]uint16, a.width)}
	a.out = []uint64{0}
	for bit, list := range words {
		for _, w := range list {
			var at uint16
			for i := range min(len(w), maxLiteral) {
				c := a.class[w[i]]
				if edges[at][c] == 0 {
					if len(edges) >= maxStates {
						return nil
					}
					edges = append(edges, make([]uint16, a.width))
					a.out = append(a.out, 0)
					edges[at][c] = uint16(len(edges) - 1)
				}
				at = edges[at][c]
			}
			if at != 0 {
				a.out[at] |= 1 << min(bit, 63)
			}
		}
	}
	a.linkTree(edges)
	return a
}

// classifyBytes assigns a class to every byte of a word; both cases of a letter share one.
// Class 0 is for all other bytes.
func (a *automaton) classifyBytes(w string) {
	for i := range min(len(w), maxLiteral) {
		low := lowerByte(w[i])
		if a.class[low] != 0 {
			continue
		}
		a.class[low] = uint8(a.width)
		if low >= 'a' && low <= 'z' {
			a.class[low-'a'+'A'] = uint8(a.width)
		}
		a.width++
	}
}

// linkTree turns the tree into an automaton, breadth first.
func (a *automaton) linkTree(edges [][]uint16) {
	a.shift = uint(bits.Len(uint(a.width - 1)))
	a.next = make([]uint32, len(edges)<<a.shift)
	fail := make([]uint16, len(edges))
	queue := []uint16{0}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for c := range a.width {
			at := int(s)<<a.shift + c
			t := edges[s][c]
			var back uint32
			if s != 0 {
				back = a.next[int(fail[s])<<a.shift+c]
			}
			if t == 0 {
				a.next[at] = back
				continue
			}
			fail[t] = uint16(back >> a.shift)
			a.out[t] |= a.out[fail[t]]
			a.next[at] = uint32(t) << a.shift
			queue = append(queue, t)
		}
	}
	for i, row := range a.next {
		if a.out[row>>a.shift] != 0 {
			a.next[i] = row | hit
		}
	}
}

// hit marks a table entry whose state ends a word.
const hit = 1 << 31

// scanWords returns the bits of the words that occur in s.
func (a *automaton) scanWords(s string) uint64 { return a.scanFrom(0, s) }

// scanFrom continues a scan in a state.
func (a *automaton) scanFrom(state uint32, s string) uint64 {
	var found uint64
	next, class := a.next, &a.class
	for i := range len(s) {
		state = next[state+uint32(class[s[i]])]
		if state >= hit {
			state &^= hit
			found |= a.out[state>>a.shift]
		}
	}
	return found
}

// scanTwo scans two texts in one loop.
func (a *automaton) scanTwo(s, t string) (inS, inT uint64) {
	n := min(len(s), len(t))
	var one, two uint32
	next, class := a.next, &a.class
	for i := range n {
		one, two = next[one+uint32(class[s[i]])], next[two+uint32(class[t[i]])]
		if one|two >= hit {
			inS, inT = inS|a.endedWords(one), inT|a.endedWords(two)
			one, two = one&^hit, two&^hit
		}
	}
	return inS | a.scanFrom(one, s[n:]), inT | a.scanFrom(two, t[n:])
}

// endedWords returns the bits of the words that end in a state. The state may carry the mark.
func (a *automaton) endedWords(state uint32) uint64 { return a.out[(state&^hit)>>a.shift] }

// scanAt is like scan, but calls do with the bits and the end of each match.
func (a *automaton) scanAt(s string, do func(bits uint64, end int)) {
	var state uint32
	for i := range len(s) {
		state = a.next[state+uint32(a.class[s[i]])]
		if state >= hit {
			state &^= hit
			do(a.out[state>>a.shift], i+1)
		}
	}
}

func lowerByte(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
