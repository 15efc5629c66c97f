package command

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxBraces limits the words of one brace expansion.
const maxBraces = 64

// word is one word of a command, as far as it is known before run time.
type word struct {
	text  string
	mark  Mark
	added bool // represents words that are added at run time; not part of the text
}

// isDynamic reports whether the value is only known at run time.
func (w word) isDynamic() bool { return w.mark&MarkExpansion != 0 }

// appendWords appends the words that n expands to: one, or several after brace expansion.
func (w *walker) appendWords(list []word, n *syntax.Word) []word {
	if !slices.ContainsFunc(n.Parts, openBrace) {
		return append(list, w.singleWord(n))
	}
	return append(list, w.bracedWords(n)...)
}

// bracedWords returns the words that n, which contains a brace, expands to.
func (w *walker) bracedWords(n *syntax.Word) (list []word) {
	split := *n
	split.Parts = slices.Clone(n.Parts) // n does not change
	syntax.SplitBraces(&split)
	if braceCount(split.Parts) > maxBraces {
		return []word{{text: w.nodeText(n), mark: MarkExpansion}}
	}
	for each := range expand.BracesSeq(nil, &split) { //nolint:errcheck // its error is for far more words than maxBraces
		// Bash drops words that brace expansion leaves empty: {,} sudo runs sudo.
		if got := w.resolvedWord(each, ""); got.text != "" || hasQuotes(each) {
			list = append(list, got)
		}
	}
	return list
}

// openBrace reports whether the part contains an unquoted {.
func openBrace(part syntax.WordPart) bool {
	lit, ok := part.(*syntax.Lit)
	return ok && strings.IndexByte(lit.Value, '{') >= 0
}

// hasQuotes reports whether a part of n is quoted.
func hasQuotes(n *syntax.Word) bool {
	for _, part := range n.Parts {
		if _, ok := part.(*syntax.Lit); !ok {
			return true
		}
	}
	return false
}

// braceCount returns the number of words that the parts expand to. It stops counting soon after maxBraces.
func braceCount(parts []syntax.WordPart) int {
	count := 1
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if brace.Sequence {
			return maxBraces + 1
		}
		sum := 0
		for _, elem := range brace.Elems {
			sum += braceCount(elem.Parts)
		}
		count = min(count*sum, maxBraces+1)
	}
	return count
}

// singleWord resolves n without brace expansion.
func (w *walker) singleWord(n *syntax.Word) word {
	if len(n.Parts) == 1 {
		// The two most frequent forms need no builder.
		switch part := n.Parts[0].(type) {
		case *syntax.Lit:
			if strings.IndexByte(part.Value, '\\') < 0 {
				return word{text: part.Value, mark: literalMark(part.Value, true)}
			}
		case *syntax.SglQuoted:
			if !part.Dollar {
				return word{text: part.Value}
			}
		}
	}
	return w.resolvedWord(n, w.nodeText(n))
}

// resolvedWord joins the parts of n. source is the text to show if one of them is an expansion.
func (w *walker) resolvedWord(n *syntax.Word, source string) word {
	var text strings.Builder
	var mark Mark
	for i, part := range n.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			mark |= literalMark(p.Value, i == 0)
			text.WriteString(unescapeWord(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				text.WriteString(decodeANSI(p.Value))
			} else {
				text.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			mark |= w.appendQuoted(&text, p)
		case *syntax.ExtGlob:
			mark |= MarkPattern | MarkExpansion
			text.WriteString(w.nodeText(part))
		default:
			mark |= MarkExpansion
			text.WriteString(w.nodeText(part))
		}
	}
	if mark&MarkExpansion != 0 && source != "" {
		return word{text: source, mark: mark}
	}
	return word{text: text.String(), mark: mark}
}

// appendQuoted appends the content of double quotes.
func (w *walker) appendQuoted(text *strings.Builder, q *syntax.DblQuoted) (mark Mark) {
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			mark = MarkExpansion
			text.WriteString(w.nodeText(part))
			continue
		}
		text.WriteString(unescapeQuoted(lit.Value))
	}
	return mark
}

// literalMark finds unquoted pattern characters and tildes in the source of a literal.
func literalMark(lit string, first bool) (mark Mark) {
	if first && strings.HasPrefix(lit, "~") || strings.Contains(lit, "=~") || strings.Contains(lit, ":~") {
		mark = MarkTilde
	}
	for i := 0; i < len(lit); i++ {
		switch lit[i] {
		case '\\':
			i++
		case '[':
			if strings.IndexByte(lit[i:], ']') < 0 {
				continue // the command [, or a bracket that is never closed
			}
			return mark | MarkPattern
		case '*', '?':
			return mark | MarkPattern
		}
	}
	return mark
}

// unescapeWord removes backslashes outside quotes.
func unescapeWord(lit string) string {
	if strings.IndexByte(lit, '\\') < 0 {
		return lit
	}
	out := make([]byte, 0, len(lit))
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) {
			i++
		}
		out = append(out, lit[i])
	}
	return string(out)
}

// unescapeQuoted removes backslashes between double quotes, where they escape only a few characters.
func unescapeQuoted(lit string) string {
	if strings.IndexByte(lit, '\\') < 0 {
		return lit
	}
	out := make([]byte, 0, len(lit))
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) && strings.IndexByte("$`\"\\\n", lit[i+1]) >= 0 {
			i++
		}
		out = append(out, lit[i])
	}
	return string(out)
}

// decodeANSI decodes the inside of $'…' (bash manual, ANSI-C Quoting). Like bash, it ends at a NUL.
func decodeANSI(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		if at := strings.IndexByte("abefnrtvE", s[i]); at >= 0 {
			out = append(out, "\a\b\x1b\f\n\r\t\v\x1b"[at])
			continue
		}
		value, used := ansiNumber(s[i:])
		switch {
		case used == 0 && strings.IndexByte(`\'"?`, s[i]) >= 0:
			out = append(out, s[i])
			continue
		case used == 0:
			out = append(out, '\\', s[i])
			continue
		case value == 0:
			return string(out)
		case s[i] == 'u' || s[i] == 'U':
			out = utf8.AppendRune(out, rune(value))
		default:
			out = append(out, byte(value))
		}
		i += used - 1
	}
	return string(out)
}

// ansiNumber decodes the escapes that contain a number; used is 0 if s is none of them.
func ansiNumber(s string) (value uint64, used int) {
	base, start, most := 16, 1, 0
	switch {
	case s[0] == 'x':
		most = 2
	case s[0] == 'u':
		most = 4
	case s[0] == 'U':
		most = 8
	case s[0] == 'c' && len(s) > 1:
		return uint64(s[1] & 0x1f), 2
	case s[0] >= '0' && s[0] <= '7':
		base, start, most = 8, 0, 3
	default:
		return 0, 0
	}
	end := start
	for end < len(s) && end-start < most && isDigit(s[end], base) {
		end++
	}
	if end == start {
		return 0, 0
	}
	value, _ = strconv.ParseUint(s[start:end], base, 64) // cannot fail: at most 8 checked digits
	return value, end
}

// isDigit reports whether c is an octal or hexadecimal digit.
func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
