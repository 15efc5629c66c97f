package toolschema

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxListed = 40  // values that words list
	maxWords  = 600 // bytes of one thing that is said in words
	maxPhrase = 3   // objects and lists within each other that a phrase describes
)

// phraseOf describes a node in a few words, for a model: "string of at most 10 characters".
func phraseOf(n *node) string {
	var b strings.Builder
	n.describeTo(&b, 0)
	return shortenText(b.String(), maxWords)
}

// describeTo writes a phrase, and stops somewhere behind maxWords.
func (n *node) describeTo(b *strings.Builder, level int) {
	switch {
	case b.Len() > maxWords:
		return
	case n.allowsNothing():
		b.WriteString("nothing")
		return
	case n.limited:
		if len(n.enum) > 1 {
			b.WriteString("one of ")
		}
		b.WriteString(listValues(n.enum, maxListed))
		return
	case n.types == anything && len(n.choices) > 0:
	default:
		b.WriteString(phraseTypes(n.types))
	}
	if level < maxPhrase && n.types != anything {
		n.describeParts(b, level)
	}
	if said := n.limitWords(); len(said) > 0 {
		b.WriteString(" (" + strings.Join(said, ", ") + ")")
	}
	for _, c := range n.choices {
		if s := b.String(); s != "" && !strings.HasSuffix(s, " ") {
			b.WriteString(", ")
		}
		b.WriteString(describeForms(c, level+1))
	}
}

// describeParts describes what an object or a list consists of.
func (n *node) describeParts(b *strings.Builder, level int) {
	if n.types&object != 0 && len(n.properties) > 0 {
		b.WriteString(" with ")
		for i, p := range n.properties {
			if b.Len() > maxWords {
				return
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(p.name)
			if !p.required {
				b.WriteString("?")
			}
			b.WriteString(": ")
			p.node.describeTo(b, level+1)
		}
	} else if n.types&object != 0 && n.additional != nil && !n.additional.allowsNothing() {
		b.WriteString(" whose values are: ")
		n.additional.describeTo(b, level+1)
	}
	if n.types&array != 0 && n.items != nil && !n.items.isFree() {
		b.WriteString(" of: ")
		n.items.describeTo(b, level+1)
	}
}

// limitWords returns the limits of a node in words.
func (n *node) limitWords() []string {
	var out []string
	for i := range limitNames {
		if n.limits[i] != "" && n.types&limitTypes[i] != 0 {
			out = append(out, limitWords(i, n.limits[i]))
		}
	}
	if n.types&text != 0 {
		if n.format != "" {
			out = append(out, formatWords(n.format))
		}
		for _, p := range n.patterns {
			out = append(out, patternWords(p))
		}
	}
	return append(out, n.words...)
}

// describeForms describes the branches of a choice.
func describeForms(c choice, level int) string {
	var b strings.Builder
	if c.one {
		b.WriteString("exactly one of: ")
	} else {
		b.WriteString("at least one of: ")
	}
	for i, branch := range c.branches {
		if b.Len() > maxWords {
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if names, ok := branch.onlyRequired(); ok {
			b.WriteString(strings.Join(names, " and "))
			continue
		}
		branch.describeTo(&b, level)
		if branch.description != "" {
			b.WriteString(" - " + shortenText(branch.description, maxWords/4))
		}
	}
	return b.String()
}

// onlyRequired returns the names that a node requires if that is all it says.
func (n *node) onlyRequired() ([]string, bool) {
	bare := *n
	bare.properties = nil
	if bare.types &= anything; bare.types == object {
		bare.types = anything
	}
	if len(n.properties) == 0 || !bare.isFree() {
		return nil, false
	}
	var names []string
	for _, p := range n.properties {
		if !p.required || !p.node.isFree() {
			return nil, false
		}
		names = append(names, p.name)
	}
	return names, true
}

// limitWords says a limit.
func limitWords(limit int, v string) string {
	return fmt.Sprintf([...]string{
		"at least %s", "at most %s", "more than %s", "less than %s", "a multiple of %s",
		"at least %s characters", "at most %s characters", "at least %s items", "at most %s items",
		"at least %s properties", "at most %s properties",
	}[limit], v)
}

func patternWords(p string) string { return "must match " + shortenText(p, maxWords) }

func formatWords(format string) string { return "format " + shortenText(format, 60) }

// listValues lists values, at most a number of them.
func listValues(values []*value, limit int) string {
	var b strings.Builder
	for i, v := range values {
		if i == limit || b.Len() > maxWords {
			fmt.Fprintf(&b, " and %d more", len(values)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(sourceText(v))
	}
	return b.String()
}

// typeOrder lists the types in the order in which they are said and written.
var typeOrder = []struct {
	set  typeSet
	name string
}{
	{object, "object"},
	{array, "array"},
	{text, "string"},
	{number, "number"},
	{integer, "integer"},
	{boolean, "boolean"},
	{null, "null"},
}

// jsonTypes returns the names of the types of a set.
func jsonTypes(set typeSet) []string {
	var out []string
	for _, t := range typeOrder {
		switch {
		case t.set == number && set&fraction != 0,
			t.set == integer && set&number == integer, t.set&number == 0 && set&t.set != 0:
			out = append(out, t.name)
		}
	}
	return out
}

// typeFamilies returns the types of a set, integers and other numbers as one, without null.
func typeFamilies(set typeSet) []typeSet {
	var out []typeSet
	for _, t := range []typeSet{array, object, text, number, boolean} {
		if set&t != 0 {
			out = append(out, set&t)
		}
	}
	return out
}

func phraseTypes(set typeSet) string {
	if set == anything || bits.OnesCount8(uint8(set)) == 0 {
		return "any JSON value"
	}
	return strings.Join(jsonTypes(set), " or ")
}

// shortenText cuts a text at a border of characters, and says so.
func shortenText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit -= len("…")
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// addWords puts words behind a description.
func addWords(description string, words []string) string {
	var kept []string
	for _, w := range words {
		if w = strings.TrimSpace(w); w != "" && !slices.Contains(kept, w) {
			kept = append(kept, w)
		}
	}
	if len(kept) == 0 {
		return description
	}
	all := strings.Join(kept, "; ")
	if description == "" {
		return all
	}
	return strings.TrimRight(description, " \n") + " (" + all + ")"
}
