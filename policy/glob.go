package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/gram"
)

// Glob is a compiled pattern. For each part of the pattern between two stars, matching takes time linear in the text;
// it never backtracks over a star.
type Glob struct {
	pattern string
	fold    bool
	all     bool // only stars
	star    bool // at least one star: the first part is a prefix and the last one a suffix
	parts   []part
	head    byte        // every match begins with it; 0 = not known
	need    sketch      // of the literal text
	grams   gram.Needle // of the longest literal part
}

// part is the text between two stars. If it has no wildcard, literal is all of it and elems is nil.
type part struct {
	literal string
	elems   []elem
}

// elem matches one rune.
type elem struct {
	kind   elemKind
	r      rune
	negate bool
	fold   bool
	ranges []runeRange
}

type elemKind uint8

const (
	elemRune elemKind = iota
	elemAny
	elemClass
)

type runeRange struct{ lo, hi rune }

// CompileGlob compiles a pattern that must match a whole text. `*` (and `**`) matches anything, including slashes and
// newlines, `?` matches one character, `[abc]` and `[a-z]` one of a set, and `[!abc]` one outside of it. To match a
// wildcard itself, write `[*]`. Everything else matches itself. With fold, letters match in any case. An invalid
// pattern is an error.
func CompileGlob(pattern string, fold bool) (*Glob, error) {
	if pattern == "" {
		return nil, errors.New("the pattern is empty; write * to match everything")
	}
	if !utf8.ValidString(pattern) {
		return nil, errors.New("the pattern is not valid UTF-8")
	}
	g := &Glob{pattern: pattern, fold: fold, all: strings.Trim(pattern, "*") == ""}
	var p part
	for i := 0; i < len(pattern); {
		if pattern[i] == '*' {
			for i < len(pattern) && pattern[i] == '*' {
				i++
			}
			g.star = true
			g.parts = append(g.parts, p.done())
			p = part{}
			continue
		}
		e, n, err := parseElem(pattern[i:], fold)
		if err != nil {
			return nil, fmt.Errorf("%w at byte %d of %q", err, i, pattern)
		}
		p.elems = append(p.elems, e)
		i += n
	}
	g.parts = append(g.parts, p.done())
	if text := g.parts[0].literal; text != "" {
		g.head = text[0]
	}
	for i := range g.parts {
		g.need.add(g.parts[i].literal)
		if n := gram.Of(g.parts[i].literal); len(n) > len(g.grams) {
			g.grams = n
		}
	}
	return g, nil
}

// done turns a part without wildcards into a literal.
func (p part) done() part {
	var b strings.Builder
	for _, e := range p.elems {
		if e.kind != elemRune {
			return p
		}
		b.WriteRune(e.r)
	}
	return part{literal: b.String()}
}

// parseElem parses one element and returns its length in bytes.
func parseElem(s string, fold bool) (elem, int, error) {
	r, n := utf8.DecodeRuneInString(s)
	switch r {
	case '?':
		return elem{kind: elemAny}, n, nil
	case '[':
		return parseClass(s, fold)
	}
	if fold {
		r = foldRune(r)
	}
	return elem{kind: elemRune, r: r}, n, nil
}

// parseClass parses `[…]`. A `]` in first place is a literal.
func parseClass(s string, fold bool) (elem, int, error) {
	e := elem{kind: elemClass, fold: fold}
	i := 1
	if strings.HasPrefix(s[i:], "!") {
		e.negate = true
		i++
	} else if strings.HasPrefix(s[i:], "^") {
		return e, 0, errors.New("a class is negated by [!…], not by [^…]")
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return e, 0, errors.New("a class is not closed by ]")
		}
		lo, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if lo == ']' && !first {
			return e, i, nil
		}
		hi := lo
		if rest := s[i:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			hi, n = utf8.DecodeRuneInString(rest[1:])
			i += 1 + n
		}
		if hi < lo {
			return e, 0, fmt.Errorf("the range %c-%c is the wrong way round", lo, hi)
		}
		e.ranges = append(e.ranges, runeRange{lo, hi})
		if fold && lo == hi {
			e.ranges = append(e.ranges, runeRange{foldRune(lo), foldRune(lo)})
		}
	}
}

// QuoteGlob returns a pattern that matches only the text.
func QuoteGlob(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; c {
		case '*', '?', '[':
			b.WriteString("[" + string(c) + "]")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// String returns the pattern.
func (g *Glob) String() string { return g.pattern }

// Match reports whether the pattern matches the whole text. It allocates only if the pattern folds and the text has
// something to fold.
func (g *Glob) Match(text string) bool {
	if g.fold {
		text = foldText(text)
	}
	return g.match(text)
}

// match is Match for text that is already folded if g folds.
func (g *Glob) match(text string) bool {
	if g.all {
		return true
	}
	first := &g.parts[0]
	n, ok := first.prefix(text)
	if !ok {
		return false
	}
	text = text[n:]
	if !g.star {
		return text == ""
	}
	last := len(g.parts) - 1
	n, ok = g.parts[last].suffix(text)
	if !ok {
		return false
	}
	text = text[:len(text)-n]
	for i := 1; i < last; i++ {
		end, ok := g.parts[i].find(text)
		if !ok {
			return false
		}
		text = text[end:]
	}
	return true
}

// prefix returns the length of the match at the start of s.
func (p *part) prefix(s string) (int, bool) {
	if p.elems == nil {
		return len(p.literal), strings.HasPrefix(s, p.literal)
	}
	at := 0
	for i := range p.elems {
		r, n := utf8.DecodeRuneInString(s[at:])
		if n == 0 || !p.elems[i].match(r, n) {
			return 0, false
		}
		at += n
	}
	return at, true
}

// suffix returns the length of the match at the end of s.
func (p *part) suffix(s string) (int, bool) {
	if p.elems == nil {
		return len(p.literal), strings.HasSuffix(s, p.literal)
	}
	end := len(s)
	for i := len(p.elems) - 1; i >= 0; i-- {
		r, n := utf8.DecodeLastRuneInString(s[:end])
		if n == 0 || !p.elems[i].match(r, n) {
			return 0, false
		}
		end -= n
	}
	return len(s) - end, true
}

// find returns the end of the leftmost match in s.
func (p *part) find(s string) (int, bool) {
	if p.elems == nil {
		i := strings.Index(s, p.literal)
		return i + len(p.literal), i >= 0
	}
	for at := 0; at < len(s); {
		if n, ok := p.prefix(s[at:]); ok {
			return at + n, true
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
	}
	return 0, false
}

// match matches one rune of n bytes. A byte that is not UTF-8 (n = 1) does not match a literal U+FFFD.
func (e *elem) match(r rune, n int) bool {
	switch e.kind {
	case elemRune:
		return r == e.r && (r != utf8.RuneError || n > 1)
	case elemAny:
		return true
	}
	return e.in(r) != e.negate
}

// in reports whether the class contains a rune. A folded rune also represents its upper case.
func (e *elem) in(r rune) bool {
	up := r
	if e.fold {
		up = unicode.ToUpper(r)
	}
	for _, c := range e.ranges {
		if c.lo <= r && r <= c.hi || c.lo <= up && up <= c.hi {
			return true
		}
	}
	return false
}

// foldRune maps both cases of a letter to the same rune.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// foldText folds a text. It returns the text itself if nothing changes.
func foldText(s string) string {
	upper, wide := cases(s)
	switch {
	case wide:
		return strings.Map(foldRune, s)
	case upper:
		return strings.ToLower(s) // equivalent for ASCII, and much faster
	}
	return s
}

// cases reports whether a text has ASCII capitals, and whether it has anything beyond ASCII.
func cases(s string) (upper, wide bool) {
	for i := range len(s) {
		c := s[i]
		upper = upper || c-'A' < 26
		wide = wide || c >= utf8.RuneSelf
	}
	return upper, wide
}

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
