package filter

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

const (
	// maxPattern is the maximum length of a rule's regular expression in bytes (seed 003).
	maxPattern = 512
	// maxProgram is the maximum number of instructions of a compiled expression: about a MiB.
	maxProgram = 26_000
	// maxNeed is the maximum number of words that represent one expression.
	maxNeed = 32
)

// pattern is a regular expression with conditions that hold for every match.
type pattern struct {
	re    *regexp.Regexp
	need  []string // every match contains one of these, in any case; nil = not known
	blank bool     // it is ^\s*$, the most frequent expression
	form  *form    // set if it consists only of words
	tree  *syntax.Regexp
	// every match contains all of these, in this case; nil = not known
	every []string
	head  string // every matching line begins with it
}

// newPattern compiles an expression within the limits.
func newPattern(expr string) (pattern, error) {
	if len(expr) > maxPattern {
		return pattern{}, fmt.Errorf("the regular expression has %d bytes, at most %d are allowed", len(expr),
			maxPattern)
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return pattern{}, fmt.Errorf("bad regular expression %q: %w", expr, err)
	}
	if programWeight(tree) > maxProgram {
		return pattern{}, fmt.Errorf("the regular expression %q is too large when its repetitions are written out",
			expr)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return pattern{}, fmt.Errorf("bad regular expression %q: %w", expr, err)
	}
	tree = tree.Simplify()
	return pattern{
		re: re, need: neededWords(tree), blank: expr == `^\s*$`, form: formOf(tree), tree: tree,
		every: everyWord(tree), head: literalHead(tree),
	}, nil
}

// literalHead returns the text with which every matching line begins, where case matters; "" when it is not known.
func literalHead(re *syntax.Regexp) string {
	if re.Op != syntax.OpConcat || len(re.Sub) < 2 || re.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	if first := re.Sub[1]; first.Op == syntax.OpLiteral && first.Flags&syntax.FoldCase == 0 {
		return string(first.Rune)
	}
	return ""
}

// everyWord returns words that all occur in every match, where case matters.
func everyWord(re *syntax.Regexp) []string {
	if re.Op != syntax.OpConcat {
		return nil
	}
	var words []string
	for _, sub := range re.Sub {
		if sub.Op == syntax.OpLiteral && sub.Flags&syntax.FoldCase == 0 && len(sub.Rune) > 1 {
			words = append(words, string(sub.Rune))
		}
	}
	return words
}

// programWeight estimates the number of instructions of a compiled expression.
func programWeight(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/8
	}
	for _, sub := range re.Sub {
		n += programWeight(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}

// neededWords returns words of which one occurs in every match, or nil.
func neededWords(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if word := literalWords(re); len(word) > 1 {
			return []string{word}
		}
		return nil
	case syntax.OpCapture, syntax.OpPlus:
		return neededWords(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return neededWords(re.Sub[0])
		}
		return nil
	case syntax.OpConcat:
		return mostSelective(re.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			words := neededWords(sub)
			if words == nil || len(all)+len(words) > maxNeed {
				return nil
			}
			all = append(all, words...)
		}
		return all
	default:
		return nil
	}
}

// mostSelective returns the most selective of several conditions that must all hold.
func mostSelective(subs []*syntax.Regexp) []string {
	var chosen []string
	short := func(words []string) int {
		n := maxLiteral
		for _, w := range words {
			n = min(n, len(w))
		}
		return n
	}
	for _, sub := range subs {
		if words := neededWords(sub); words != nil && (chosen == nil || short(words) > short(chosen)) {
			chosen = words
		}
	}
	return chosen
}

// literalWords returns the text of a literal. If case does not matter, letters with a further form outside ASCII (k, s)
// split it, and the result is the longest piece.
func literalWords(re *syntax.Regexp) string {
	if re.Flags&syntax.FoldCase == 0 {
		return string(re.Rune)
	}
	longest := ""
	for _, piece := range strings.FieldsFunc(string(re.Rune), func(r rune) bool {
		return r == 'k' || r == 'K' || r == 's' || r == 'S' || r > unicode.MaxASCII
	}) {
		if len(piece) > len(longest) {
			longest = piece
		}
	}
	return longest
}

func (p *pattern) matchText(s string) bool {
	switch {
	case p.blank:
		for i := range len(s) {
			if s[i] != ' ' && (s[i] < '\t' || s[i] > '\r' || s[i] == '\v') {
				return false
			}
		}
		return true
	case p.form != nil:
		return p.form.matchForm(s)
	}
	if !strings.HasPrefix(s, p.head) {
		return false
	}
	for _, w := range p.every {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return p.re.MatchString(s)
}

// patterns are several expressions with a common prefilter.
type patterns struct {
	list  []pattern
	first [256]uint64 // bits of expressions that match only at the start, by the first byte of the line
	empty uint64      // bits of those that may match an empty line
	look  *automaton  // finds the others by their words; nil = there are none
	loose uint64      // bits of others without words
}

func newPatterns(exprs []string) (*patterns, error) {
	p := &patterns{}
	words := make([][]string, len(exprs))
	search := false
	for i, expr := range exprs {
		one, err := newPattern(expr)
		if err != nil {
			return nil, fmt.Errorf("pattern %d: %w", i+1, err)
		}
		p.list = append(p.list, one)
		bit := uint64(1) << min(i, 63)
		switch {
		case anchoredAtStart(one.tree):
			p.recordStart(one.tree, bit)
		case one.need == nil:
			p.loose |= bit
		default:
			words[i], search = one.need, true
		}
	}
	if search {
		if p.look = newAutomaton(words); p.look == nil {
			p.loose = ^uint64(0)
		}
	}
	return p, nil
}

// recordStart records the first bytes of lines that an expression matches.
func (p *patterns) recordStart(tree *syntax.Regexp, bit uint64) {
	var set [256]bool
	if firstBytes(tree, &set) {
		addAllBytes(&set)
		p.empty |= bit
	}
	for b, in := range set {
		if in {
			p.first[b] |= bit
		}
	}
}

// matchAny reports whether one of the expressions matches s.
func (p *patterns) matchAny(s string) bool {
	if p == nil {
		return false
	}
	hits := p.loose
	if s == "" {
		hits |= p.empty
	} else {
		hits |= p.first[s[0]]
	}
	if p.look != nil {
		hits |= p.look.scanWords(s)
	}
	return hits != 0 && p.matchAmong(hits, s)
}

// matchAmong reports whether one of the expressions with these bits matches s.
func (p *patterns) matchAmong(hits uint64, s string) bool {
	for i := range p.list {
		if hits&(1<<min(i, 63)) != 0 && p.list[i].matchText(s) {
			return true
		}
	}
	return false
}
