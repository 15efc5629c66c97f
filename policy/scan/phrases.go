package scan

import (
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"
)

// phrase is a text with which matches of a rule begin, in lower case. A blank represents one or more white spaces.
type phrase struct {
	text  string
	rule  int    // for an anchor: anchorRule or below
	stem  bool   // for an anchor: any ending may follow
	loose bool   // for an anchor: no condition on its neighbours
	whole []word // for an anchor: the words with this beginning, one of which must be there
}

// leet maps digits and signs to the letters for which people write them.
var leet = [...]struct{ digit, letter byte }{
	{'0', 'o'},
	{'1', 'i'},
	{'3', 'e'},
	{'4', 'a'},
	{'5', 's'},
	{'7', 't'},
	{'@', 'a'},
	{'$', 's'},
}

// expand expands phrases: alternatives are separated by commas and, within parentheses, by bars; "_" is a blank, "~" an
// underscore.
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
					next = append(next, head+spelled.Replace(word+choice))
				}
			}
			heads, one = next, rest
		}
		all = append(all, heads...)
	}
	return all
}

// spelled replaces the signs of expand.
var spelled = strings.NewReplacer("_", " ", "~", "_")

// automaton finds phrases in one pass, ignoring the case of ASCII letters and the length of white space (Aho-Corasick,
// as a table).
type automaton struct {
	class [256]uint8
	width int
	shift int         // a row of the table has 1<<shift entries
	next  []uint16    // by row and class: the next state, marked if a phrase ends there
	ends  [][]*phrase // by state
}

// ending marks an entry of the table whose state ends a phrase.
const ending = 1 << 15

// phrases is the automaton of all rules and all anchors.
var phrases = sync.OnceValue(func() *automaton {
	var list []*phrase
	for i, r := range rules() {
		for _, text := range r.phrases {
			list = append(list, &phrase{text: text, rule: i})
		}
	}
	return build(append(list, anchorPhrases()...))
})

// build returns the automaton for a list of phrases.
func build(list []*phrase) *automaton {
	a := &automaton{width: 1, ends: [][]*phrase{nil}}
	for _, p := range list {
		a.classes(p.text)
	}
	a.class['\t'], a.class['\n'] = a.class[' '], a.class[' ']
	for _, l := range leet {
		a.class[l.digit] = a.class[l.letter]
	}
	a.shift = bits.Len(uint(a.width - 1))
	a.next = make([]uint16, 1<<a.shift)
	var blanks []uint16
	for _, p := range list {
		blanks = append(blanks, a.plant(p)...)
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
}

// classes assigns a class to every byte of a phrase. The cases of a letter share one, and so do bytes beyond ASCII with
// equal last bits: otherwise the table would be three times as large, and a hit is verified anyway. Class 0 is for all
// other bytes.
func (a *automaton) classes(text string) {
	for i := range len(text) {
		c := text[i]
		for _, l := range leet { // a digit counts as a letter; the verification of a hit shows which it was
			if c == l.digit {
				c = l.letter
			}
		}
		if a.class[c] != 0 {
			continue
		}
		if c >= utf8.RuneSelf {
			for other := int(c & 0x87); other < 256; other += 8 {
				a.class[other] = uint8(a.width)
			}
			a.width++
			continue
		}
		a.class[c] = uint8(a.width)
		if c >= 'a' && c <= 'z' {
			a.class[c-'a'+'A'] = uint8(a.width)
		}
		a.width++
	}
}

// entry returns the index in the table for a state and a byte.
func (a *automaton) entry(state uint16, c byte) int {
	return int(state)<<a.shift | int(a.class[c])
}

// plant adds a phrase to the tree, and returns the states after its blanks.
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

// link turns the tree into an automaton, breadth first.
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

// scan calls do with each phrase in s and its end. White space must be ASCII.
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
