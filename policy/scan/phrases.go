package scan

import (
	"math/bits"
	"strings"
	"sync"
)

// phrase is a text with which matches of a rule begin: in lower case, a blank stands for one or more white spaces.
type phrase struct {
	text string
	rule int
}

// expand writes out phrases: alternatives are separated by commas and, within brackets, by bars; "_" is a blank, "~" an underscore.
func expand(list string) []string {
	var all []string
	for one := range strings.SplitSeq(list, ",") {
		heads := []string{""}
		for one != "" {
			word, rest, _ := strings.Cut(one, "(")
			group, rest, _ := strings.Cut(rest, ")")
			var next []string
			for _, head := range heads {
				for choice := range strings.SplitSeq(group, "|") {
					next = append(next, head+written.Replace(word+choice))
				}
			}
			heads, one = next, rest
		}
		all = append(all, heads...)
	}
	return all
}

// written turns the signs of expand into what they stand for.
var written = strings.NewReplacer("_", " ", "~", "_")

// automaton finds phrases in one pass, without regard to the case of ASCII letters and the length of white space (Aho-Corasick, as a table).
type automaton struct {
	class [256]uint8
	width int
	shift int         // a row of the table has 1<<shift entries
	next  []uint16    // by row and class: the next state, with a mark where a phrase ends
	ends  [][]*phrase // by state
}

// ending marks an entry of the table whose state ends a phrase.
const ending = 1 << 15

// phrases is the automaton of all rules.
var phrases = sync.OnceValue(func() *automaton {
	a := &automaton{width: 1, ends: [][]*phrase{nil}}
	for _, r := range rules {
		for _, text := range r.phrases {
			a.classes(text)
		}
	}
	a.class['\t'], a.class['\n'] = a.class[' '], a.class[' ']
	a.shift = bits.Len(uint(a.width - 1))
	a.next = make([]uint16, 1<<a.shift)
	var blanks []uint16
	for i, r := range rules {
		for _, text := range r.phrases {
			blanks = append(blanks, a.plant(&phrase{text: text, rule: i})...)
		}
	}
	a.link()
	for _, s := range blanks { // further white space changes nothing
		a.next[a.entry(s, ' ')] = s
	}
	for i, s := range a.next {
		if a.ends[s] != nil {
			a.next[i] |= ending
		}
	}
	return a
})

// classes gives every byte of a phrase a class of its own; the cases of a letter share one. Class 0 is every other byte.
func (a *automaton) classes(text string) {
	for i := range len(text) {
		c := text[i]
		if a.class[c] != 0 {
			continue
		}
		a.class[c] = uint8(a.width)
		if c >= 'a' && c <= 'z' {
			a.class[c-'a'+'A'] = uint8(a.width)
		}
		a.width++
	}
}

// entry is where the table says what follows on a byte.
func (a *automaton) entry(state uint16, c byte) int {
	return int(state)<<a.shift | int(a.class[c])
}

// plant adds a phrase to the tree, and lists the states behind its blanks.
func (a *automaton) plant(f *phrase) (blanks []uint16) {
	var at uint16
	for i := range len(f.text) {
		e := a.entry(at, f.text[i])
		if a.next[e] == 0 {
			a.next[e] = uint16(len(a.ends))
			a.ends = append(a.ends, nil)
			a.next = append(a.next, make([]uint16, 1<<a.shift)...)
		}
		if at = a.next[e]; f.text[i] == ' ' {
			blanks = append(blanks, at)
		}
	}
	a.ends[at] = append(a.ends[at], f)
	return blanks
}

// link completes the tree to an automaton, breadth first.
func (a *automaton) link() {
	fail := make([]uint16, len(a.ends))
	queue := []uint16{0}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for c := range a.width {
			e := int(s)<<a.shift | c
			var back uint16
			if s != 0 {
				back = a.next[int(fail[s])<<a.shift|c]
			}
			t := a.next[e]
			if t == 0 {
				a.next[e] = back
				continue
			}
			fail[t] = back
			a.ends[t] = append(a.ends[t], a.ends[back]...)
			queue = append(queue, t)
		}
	}
}

// scan calls do with each phrase in s and its end. White space has to be ASCII.
func (a *automaton) scan(s string, do func(f *phrase, end int)) {
	state := 0
	next, class, shift := a.next, &a.class, a.shift
	for i := range len(s) {
		state = int(next[state<<shift|int(class[s[i]])])
		if state < ending {
			continue
		}
		state &^= ending
		for _, f := range a.ends[state] {
			do(f, i+1)
		}
	}
}
