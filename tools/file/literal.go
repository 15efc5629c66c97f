package file

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// maxSet limits how many literals are searched at once.
const maxSet = 16

// need says which literals a text must contain to match an expression.
type need struct {
	exact    []string // the expression matches exactly these texts; nil = unknown
	best     []string // every match contains one of these; nil = unknown
	fold     bool     // ignoring the case of ASCII letters
	complete bool     // for a literal: exact contains all of it
}

// neededLiterals returns the literals that an expression needs for a match.
func neededLiterals(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNeed(re)
	case syntax.OpCapture:
		return neededLiterals(re.Sub[0])
	case syntax.OpPlus:
		n := neededLiterals(re.Sub[0])
		return need{best: n.best, fold: n.fold}
	case syntax.OpRepeat:
		if re.Min == 0 {
			return need{}
		}
		n := neededLiterals(re.Sub[0])
		return need{best: n.best, fold: n.fold}
	case syntax.OpCharClass:
		return classNeed(re)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{exact: []string{""}}
	case syntax.OpAlternate:
		return alternateNeed(re)
	case syntax.OpConcat:
		return concatNeed(re)
	default:
		return need{}
	}
}

// literalNeed handles a literal. If it ignores case, only its longest run of ASCII is used, because other letters can
// change their length with their case.
func literalNeed(re *syntax.Regexp) need {
	if re.Flags&syntax.FoldCase == 0 {
		if slices.Contains(re.Rune, utf8.RuneError) { // it also represents bytes that are not text
			return need{}
		}
		text := []string{string(re.Rune)}
		return need{exact: text, best: text, complete: true}
	}
	start, from, to := 0, 0, 0
	for i := 0; i <= len(re.Rune); i++ {
		if i < len(re.Rune) && re.Rune[i] < utf8.RuneSelf {
			continue
		}
		if i-start > to-from {
			from, to = start, i
		}
		start = i + 1
	}
	if to == from {
		return need{}
	}
	n := need{best: []string{string(re.Rune[from:to])}, fold: true}
	if to-from == len(re.Rune) {
		n.exact, n.complete = n.best, true
	}
	return n
}

// classNeed handles a small class by enumerating its letters.
func classNeed(re *syntax.Regexp) need {
	var n need
	for i := 0; i < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(n.exact) == 4 || r == utf8.RuneError {
				return need{}
			}
			n.exact = append(n.exact, string(r))
		}
	}
	n.best = n.exact
	return n
}

func alternateNeed(re *syntax.Regexp) need {
	var n need
	exact := true
	for _, sub := range re.Sub {
		s := neededLiterals(sub)
		if !isSelective(s.best) || len(n.best)+len(s.best) > maxSet {
			return need{}
		}
		n.fold = n.fold || s.fold
		n.best = append(n.best, s.best...)
		if exact = exact && s.exact != nil; exact {
			n.exact = append(n.exact, s.exact...)
		}
	}
	if !exact {
		n.exact = nil
	}
	return n
}

// concatNeed joins neighbours whose text is known, and keeps the best set that it finds.
func concatNeed(re *syntax.Regexp) need {
	n := need{exact: []string{""}}
	run := []string{""}
	fold := false
	for _, sub := range re.Sub {
		s := neededLiterals(sub)
		fold = fold || s.fold
		if s.exact != nil && len(run)*len(s.exact) <= maxSet {
			run = crossLiterals(run, s.exact)
			continue
		}
		n.best = moreSelective(moreSelective(n.best, run), s.best)
		n.exact = nil
		run = []string{""}
		if s.exact != nil {
			run = s.exact
		}
	}
	n.best = moreSelective(n.best, run)
	if n.exact != nil {
		n.exact = run
	}
	n.fold = fold
	return n
}

func crossLiterals(a, b []string) []string {
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// isSelective reports whether every literal in a set is not empty.
func isSelective(set []string) bool { return len(set) > 0 && shortestLength(set) > 0 }

func shortestLength(set []string) int {
	n := len(set[0])
	for _, s := range set[1:] {
		n = min(n, len(s))
	}
	return n
}

// moreSelective returns the more selective set: the longer literals, or else fewer of them.
func moreSelective(a, b []string) []string {
	switch {
	case !isSelective(b):
		return a
	case !isSelective(a):
		return b
	}
	la, lb := shortestLength(a), shortestLength(b)
	if lb > la || (lb == la && len(b) < len(a)) {
		return b
	}
	return a
}
