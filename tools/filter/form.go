package filter

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxWords is the maximum number of words of a form.
const maxWords = 64

// form is a regular expression that consists only of words, perhaps after white space at the start of the line, as most
// patterns of rules do. It is matched without the regexp engine.
type form struct {
	anchored bool // ^
	space    bool // \s* after it
	ended    bool // $
	words    []string
}

// formOf returns the form of an expression, or nil if it has none.
func formOf(re *syntax.Regexp) *form {
	f := &form{words: []string{""}}
	for _, sub := range f.peelForm(re) {
		if f.words = concatAll(f.words, expandForm(sub)); f.words == nil {
			return nil
		}
	}
	for _, w := range f.words {
		if w == "" || f.space && strings.TrimLeft(w, " \t\f\r") != w { // white space in the word would overlap with \s*
			return nil
		}
	}
	return f
}

// peelForm removes what surrounds the words.
func (f *form) peelForm(re *syntax.Regexp) []*syntax.Regexp {
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		subs = re.Sub
	}
	if len(subs) > 0 && subs[0].Op == syntax.OpBeginText {
		f.anchored, subs = true, subs[1:]
	}
	if f.anchored && len(subs) > 0 && subs[0].Op == syntax.OpStar && whiteSpace(subs[0].Sub[0]) {
		f.space, subs = true, subs[1:]
	}
	if n := len(subs); n > 0 && subs[n-1].Op == syntax.OpEndText {
		f.ended, subs = true, subs[:n-1]
	}
	return subs
}

func whiteSpace(re *syntax.Regexp) bool {
	return re.Op == syntax.OpCharClass && re.String() == `[\t\n\f\r ]`
}

// expandForm returns all texts that an expression matches; nil when there are too many or infinitely many.
func expandForm(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil
		}
		return []string{string(re.Rune)}
	case syntax.OpCapture:
		return expandForm(re.Sub[0])
	case syntax.OpQuest:
		if words := expandForm(re.Sub[0]); words != nil {
			return append([]string{""}, words...)
		}
		return nil
	case syntax.OpCharClass:
		return expandClass(re.Rune)
	case syntax.OpConcat:
		words := []string{""}
		for _, sub := range re.Sub {
			if words = concatAll(words, expandForm(sub)); words == nil {
				return nil
			}
		}
		return words
	case syntax.OpAlternate:
		var words []string
		for _, sub := range re.Sub {
			more := expandForm(sub)
			if more == nil || len(words)+len(more) > maxWords {
				return nil
			}
			words = append(words, more...)
		}
		return words
	default:
		return nil
	}
}

// expandClass returns the characters of a small class.
func expandClass(ranges []rune) []string {
	var out []string
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if out = append(out, string(r)); len(out) > 4 {
				return nil
			}
		}
	}
	return out
}

func concatAll(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 || len(a)*len(b) > maxWords {
		return nil
	}
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// trimSpace removes white space at the beginning of a line.
func trimSpace(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t' || s[0] == '\f' || s[0] == '\r') {
		s = s[1:]
	}
	return s
}

func (f *form) matchForm(s string) bool {
	if f.space {
		s = trimSpace(s)
	}
	for _, w := range f.words {
		switch {
		case f.anchored && f.ended:
			if s == w {
				return true
			}
		case f.anchored:
			if strings.HasPrefix(s, w) {
				return true
			}
		case f.ended:
			if strings.HasSuffix(s, w) {
				return true
			}
		case strings.Contains(s, w):
			return true
		}
	}
	return false
}

// firstBytes marks the bytes with which a match of an expression can begin. nullable reports that it can match the
// empty text.
func firstBytes(re *syntax.Regexp, set *[256]bool) (nullable bool) {
	switch re.Op {
	case syntax.OpLiteral:
		firstRune(set, re.Rune[0])
		if re.Flags&syntax.FoldCase != 0 {
			addAllBytes(set)
		}
		return false
	case syntax.OpCharClass:
		firstOfClass(set, re.Rune)
		return false
	case syntax.OpStar, syntax.OpQuest:
		firstBytes(re.Sub[0], set)
		return true
	case syntax.OpCapture, syntax.OpPlus:
		return firstBytes(re.Sub[0], set)
	case syntax.OpRepeat:
		return firstBytes(re.Sub[0], set) || re.Min == 0
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !firstBytes(sub, set) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			nullable = firstBytes(sub, set) || nullable
		}
		return nullable
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	default:
		addAllBytes(set)
		return false
	}
}

func firstOfClass(set *[256]bool, ranges []rune) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1] && r < utf8.RuneSelf; r++ {
			set[r] = true
		}
		if ranges[i+1] >= utf8.RuneSelf {
			addHighBytes(set)
		}
	}
}

func firstRune(set *[256]bool, r rune) {
	if r < utf8.RuneSelf {
		set[r] = true
		return
	}
	addHighBytes(set)
}

func addHighBytes(set *[256]bool) {
	for b := utf8.RuneSelf; b < len(set); b++ {
		set[b] = true
	}
}

func addAllBytes(set *[256]bool) {
	for b := range set {
		set[b] = true
	}
}

// anchoredAtStart reports whether an expression matches only at the start of the text.
func anchoredAtStart(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText:
		return true
	case syntax.OpConcat:
		return len(re.Sub) > 0 && anchoredAtStart(re.Sub[0])
	case syntax.OpCapture:
		return anchoredAtStart(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !anchoredAtStart(sub) {
				return false
			}
		}
		return true
	}
	return false
}
