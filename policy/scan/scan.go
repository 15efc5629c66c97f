// Package scan finds text that tries to instruct a model, in tool definitions, tool results and web pages. It uses the
// patterns of seed 001 and further ones for what they miss. It marks and replaces, but makes no decisions.
package scan

import (
	"slices"
	"strings"
)

// Sanitized replaces a match.
const Sanitized = "[sanitized]"

// MaxText limits how many bytes are scanned: of a longer text, the beginning and the end.
const MaxText = 1 << 20

// Match is one match of a rule.
type Match struct {
	Rule     string // "ignore_instructions"
	Category string // override, role, extraction, jailbreak, encoding, delimiter, exfiltration, secrecy, steering
	Start    int    // byte offsets in the given text
	End      int
}

// ws matches white space including Unicode's, because Go's \s is limited to ASCII.
const ws = `[\s\p{Z}\x{85}\x{0B}]`

// Names returns the names of the rules: the patterns in their order, then the orders, then those for encoded text.
func Names() []string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	for _, o := range orderTable().orders {
		if !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
	}
	return append(names, ruleEncoded, ruleHidden)
}

// Find returns text that tries to instruct a model, in the order of the text. It recognises look-alike letters,
// full-width forms and text with invisible characters. One pass searches for the phrases with which matches begin and
// for words of orders, and further work is done only where one occurs. Invisible text is not included here: Clean drops
// it, and Flag reports it.
func Find(text string) []Match {
	found := once(find(text))
	if !slices.ContainsFunc(found, func(m Match) bool { return m.Rule == ruleHidden }) {
		return found
	}
	if found = slices.DeleteFunc(found, func(m Match) bool { return m.Rule == ruleHidden }); len(found) == 0 {
		return nil
	}
	return found
}

// once drops orders that a pattern has found too.
func once(found []Match) []Match {
	listed := func(m Match) bool { return slices.ContainsFunc(rules(), func(r rule) bool { return r.name == m.Rule }) }
	if !slices.ContainsFunc(found, listed) {
		return found
	}
	var known []Match
	for _, m := range found {
		if listed(m) {
			known = append(known, m)
		}
	}
	return slices.DeleteFunc(found, func(m Match) bool {
		return !listed(m) && slices.ContainsFunc(known,
			func(k Match) bool { return k.Start < m.End && m.Start < k.End })
	})
}

// find is Find with all matches.
func find(text string) []Match {
	f := fold(text, false)
	h := search(&f)
	h.encoded = append(h.encoded, decode(h.spaced)...)
	var unseen []span
	if !f.bare {
		unseen = hidden(ends(text))
	}
	if h.idle() && len(unseen) == 0 {
		return nil
	}
	f = fold(text, true)
	found := h.matches(f.at)
	for _, s := range unseen[:min(len(unseen), maxMatches)] {
		found = append(found, Match{Rule: ruleHidden, Category: "encoding", Start: s.start, End: s.end})
	}
	slices.SortStableFunc(found, func(a, b Match) int { return a.Start - b.Start })
	return found
}

// ends returns the part of a long text that is searched for invisible characters: its beginning.
func ends(text string) string { return text[:min(len(text), MaxText)] }

// search searches a folded text for phrases and orders.
func search(f *folded) *hunt {
	h := &hunt{text: f.text, spaced: f.spaced(), rules: make([]progress, len(rules()))}
	phrases().scan(h.spaced, h.look)
	h.turns()
	h.orders()
	return h
}

// inner returns the matches in a decoded text.
func inner(text string) []Match {
	f := fold(text, false)
	return instructions(f.text, search(&f).matches(func(i int) int { return i }))
}

// Clean replaces each match by Sanitized, and drops invisible characters and controls except tab and newline. It
// returns the rules that matched, each once.
func Clean(text string) (clean string, names []string) {
	found := Find(text)
	var b strings.Builder
	last := 0
	for _, m := range found {
		if !slices.Contains(names, m.Rule) {
			names = append(names, m.Rule)
		}
		if m.Start < last { // overlaps a replaced match
			last = max(last, m.End)
			continue
		}
		b.WriteString(text[last:m.Start])
		b.WriteString(Sanitized)
		last = m.End
	}
	if last < len(text) {
		b.WriteString(text[last:])
	}
	return Strip(b.String()), names
}

// Strip drops invisible characters: format characters, controls except tab and newline, tag characters.
func Strip(text string) string {
	if !strings.ContainsFunc(text, invisible) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, text)
}

// invisible reports whether a character is on the list of seed 001, which is extended by U+180E and variation
// selectors.
func invisible(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t' && r != '\n'
	case r < 0xAD:
		return r == 0x7F
	case r < 0x2000:
		return r == 0xAD || r == 0x34F || r == 0x61C || within(r, 0x115F, 0x1160) || within(r, 0x17B4, 0x17B5) ||
			within(r, 0x180B, 0x180F)
	case r < 0x2070:
		return within(r, 0x200B, 0x200F) || within(r, 0x202A, 0x202E) || r >= 0x2060
	}
	return invisibleAbove(r)
}

// invisibleAbove is the part of the list above U+206F.
func invisibleAbove(r rune) bool {
	return r == 0x3164 || r == 0xFFA0 || within(r, 0xFE00, 0xFE0F) || r == 0xFEFF || within(r, 0xFFF9, 0xFFFB) ||
		within(r, 0x1BCA0, 0x1BCA3) || within(r, 0x1D173, 0x1D17A) || within(r, 0xE0000, 0xE01EF)
}

// within reports whether r is between first and last, inclusive.
func within(r, first, last rune) bool { return first <= r && r <= last }
