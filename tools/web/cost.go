package web

import (
	"strings"

	"golang.org/x/net/html"

	"github.com/zephbot/zephbot/tools"
)

// maxSteps limits the work of the matcher for a single element, in steps of a few nanoseconds. The time limit of the
// call is checked between elements, but nothing can stop the matcher within one. A few "~" in a selector and a page
// with a hundred thousand siblings would take days.
const maxSteps = 1e9

// shape is what the cost of a selector depends on.
type shape struct {
	nodes, depth, siblings float64
}

func shapeOf(doc *html.Node) shape {
	var s shape
	s.measure(doc, 0)
	return s
}

func (s *shape) measure(n *html.Node, depth float64) {
	s.nodes++
	s.depth = max(s.depth, depth)
	width := 0.0
	for child := range n.ChildNodes() {
		width++
		s.measure(child, depth+1)
	}
	s.siblings = max(s.siblings, width)
}

// affordable returns an error for a selector that may take too long on this page. The estimate is an upper bound, far
// above the cost of selectors in style sheets.
func affordable(selector string, doc *html.Node) error {
	if shapeOf(doc).cost(selector) <= maxSteps {
		return nil
	}
	return tools.Errorf(tools.InvalidParameters,
		"select: this selector is too complicated for so large a page; use a shorter one, with > instead of spaces "+
			"and without ~ and :has")
}

// cost returns an upper bound for the steps of matching one element: a combinator tries every ancestor or sibling for
// each one that the previous combinator tried.
func (s shape) cost(selector string) float64 {
	sum, combined, pseudo, ancestors, neighbours := 0.0, 1.0, 1.0, 0.0, 0.0
	finish := func() {
		sum += combined * pseudo
		combined, pseudo, ancestors, neighbours = 1, 1, 0, 0
	}
	for i := 0; i < len(selector); i++ {
		switch c := selector[i]; c {
		case '\\':
			i++
		case '"', '\'', '[':
			i = skip(selector, i)
		case ',':
			finish()
		case ' ', '\t', '\n', '\r', '\f':
			if combinator(selector, i) {
				ancestors++
				combined *= max(1, (s.depth-ancestors+1)/ancestors) // number of ways to choose the ancestors in order
			}
		case '~':
			neighbours++
			combined *= max(1, (s.siblings-neighbours+1)/neighbours)
		case ':':
			name, argument, end := function(selector, i+1)
			pseudo += s.pseudo(name, argument)
			i = end - 1
		}
	}
	finish()
	return sum
}

// pseudo returns the cost of a pseudo-class.
func (s shape) pseudo(name, argument string) float64 {
	switch {
	case name == "has", name == "haschild":
		return s.nodes * s.cost(argument)
	case name == "not", name == "is", name == "where":
		return s.cost(argument)
	case name == "contains", name == "containsown", name == "matches", name == "matchesown":
		return s.nodes
	case strings.Contains(name, "-"): // first-child, nth-of-type …
		return s.siblings
	}
	return 1
}

// combinator reports whether the white space at i is a descendant combinator: it is the last of its run, and there is
// no other combinator next to it.
func combinator(s string, i int) bool {
	const space = " \t\n\r\f"
	if i+1 < len(s) && strings.IndexByte(space, s[i+1]) >= 0 {
		return false
	}
	before, after := strings.TrimRight(s[:i], space), s[i+1:]
	if before == "" || after == "" {
		return false
	}
	return strings.IndexByte(">+~,", before[len(before)-1]) < 0 && strings.IndexByte(">+~,", after[0]) < 0
}

// skip returns the end of the quoted or bracketed text at i.
func skip(s string, i int) int {
	end := s[i]
	if end == '[' {
		end = ']'
	}
	for i++; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == end:
			return i
		case end == ']' && (c == '"' || c == '\''):
			i = skip(s, i)
		}
	}
	return len(s)
}

// function parses a pseudo-class at i: its name, its argument, and its end.
func function(s string, i int) (name, argument string, end int) {
	start := i
	for i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] == '-') {
		i++
	}
	name = strings.ToLower(s[start:i])
	if i >= len(s) || s[i] != '(' {
		return name, "", i
	}
	open := i + 1
	for level := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"', '\'', '[':
			i = skip(s, i)
		case '(':
			level++
		case ')':
			if level--; level == 0 {
				return name, s[open:i], i + 1
			}
		}
	}
	return name, s[min(open, len(s)):], len(s)
}
