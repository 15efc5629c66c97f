package scan

import (
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"
)

// phrase is a text with which matches of a rule begin: in lower case, a blank stands for one or more white spaces.
type phrase struct {
	text  string
	rule  int    // of an anchor: anchorRule or below
	stem  bool   // of an anchor: any ending may follow
	loose bool   // of an anchor: nothing is asked of its neighbours
	whole []word // of an anchor: the words that begin like this, one of which has to stand there
}

// leet are the digits and signs that people write for letters.
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

// expand writes out phrases: alternatives are separated by commas and, within brackets, by bars; "_" is a blank, "~" an
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

// automaton finds phrases in one pass, without regard to the case of ASCII letters and the length of white space
// (Aho-Corasick, as a table).
type automaton struct {
	class [256]uint8
	width int
	shift int         // a row of the table has 1<<shift entries
	next  []uint16    // by row and class: the next state, with a mark where a phrase ends
	ends  [][]*phrase // by state
}

// ending marks an entry of the table whose state ends a phrase.
const ending = 1 << 15

// phrases is the automaton of all rules and all anchors.
var phrases = sync.OnceValue(func() *automaton {
	var list []*phrase
	for i, r := range rules {
		for _, text := range r.phrases {
			list = append(list, &phrase{text: text, rule: i})
		}
	}
	return build(append(list, anchorPhrases()...))
})

// build makes the automaton of a list of phrases.
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

// classes gives every byte of a phrase a class of its own; the cases of a letter share one, and so do bytes beyond
// ASCII whose last bits are equal: the table would be three times as large, and a hit is compared anyway. Class 0 is
// every other byte.
func (a *automaton) classes(text string) {
	for i := range len(text) {
		c := text[i]
		for _, l := range leet { // a digit stands for a letter; whoever looks at a hit sees which it was
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

// entry returns where the table says what follows on a byte.
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
