package redact

import (
	"cmp"
	"slices"
	"strings"
)

// entry is a keyword of a rule, or one form of an exact value.
type entry struct {
	text string // in lower case for a rule, unchanged for a value
	rule *rule  // nil for a value
}

// index finds the entries that may start at a position, by the first two bytes in lower case.
type index struct {
	pairs   [1 << 16 / 64]uint64
	entries map[uint16][]entry
	slots   [1 << 16]uint16 // by pair: index in lists
	lists   []list
}

// list contains the entries of one pair, and their third bytes.
type list struct {
	third [256]bool
	all   bool // an entry has at most two bytes
	first []entry
}

// build fills the index with the rule table and the forms of the values.
func (x *index) build(secrets []string) {
	x.entries, x.lists = map[uint16][]entry{}, []list{{}}
	table := rules()
	for i := range table {
		for keyword := range strings.FieldsSeq(table[i].keywords) {
			x.add(entry{text: keyword, rule: &table[i]})
		}
	}
	for _, secret := range secrets {
		for _, spelling := range spellings(secret) {
			x.add(entry{text: spelling})
		}
	}
	mark := pair(Mask[0], Mask[1])
	x.pairs[mark/64] |= 1 << (mark % 64)
	for key, list := range x.entries {
		// Values come first, and longer ones before shorter ones, so that a value that begins with another is masked
		// completely.
		slices.SortStableFunc(list, func(a, b entry) int {
			if a.rule == nil && b.rule == nil {
				return cmp.Compare(len(b.text), len(a.text))
			}
			return cmp.Compare(btoi(a.rule != nil), btoi(b.rule != nil))
		})
		x.slot(key)
	}
}

// slot prepares the entries of a pair for the scan.
func (x *index) slot(key uint16) {
	l := list{first: x.entries[key]}
	for _, e := range l.first {
		if len(e.text) < 3 {
			l.all = true
		} else {
			l.third[e.text[2]], l.third[lower(e.text[2])] = true, true
		}
	}
	x.slots[key] = uint16(len(x.lists))
	x.lists = append(x.lists, l)
}

// btoi returns 1 for true, else 0.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// add adds an entry under its first two bytes. A keyword of one byte is added under all pairs that start with it.
func (x *index) add(e entry) {
	if len(e.text) == 1 {
		for second := range 256 {
			x.put(pair(e.text[0], byte(second)), e)
		}
		return
	}
	x.put(pair(e.text[0], e.text[1]), e)
}

func (x *index) put(key uint16, e entry) {
	if slices.Contains(x.entries[key], e) {
		return
	}
	x.pairs[key/64] |= 1 << (key % 64)
	x.entries[key] = append(x.entries[key], e)
}

// pair returns the key of two bytes, ignoring case.
func pair(a, b byte) uint16 { return uint16(lower(a))<<8 | uint16(lower(b)) }

// lower folds an ASCII letter.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// scan finds the credentials in s in one pass.
func (x *index) scan(s string) (found []Finding) {
	var table [256]byte
	for c := range table {
		table[c] = lower(byte(c))
	}
	t := text{s: s}
	for i := 0; i+1 < len(s); i++ {
		key := uint16(table[s[i]])<<8 | uint16(table[s[i+1]])
		if x.pairs[key/64]&(1<<(key%64)) == 0 {
			continue
		}
		if s[i] == Mask[0] && strings.HasPrefix(s[i:], Mask) {
			i += len(Mask) - 1
			t.done = i + 1
			continue
		}
		l := &x.lists[x.slots[key]]
		if !l.all && (i+2 == len(s) || !l.third[s[i+2]] && !l.third[table[s[i+2]]]) {
			continue
		}
		f, ok := x.try(&t, i, l.first)
		if !ok {
			continue
		}
		found = append(found, f)
		t.done = f.End
		i = max(i, f.End-1)
	}
	return found
}

// try looks for an entry at i.
func (x *index) try(t *text, i int, entries []entry) (Finding, bool) {
	for _, e := range entries {
		if e.rule == nil {
			if strings.HasPrefix(t.s[i:], e.text) {
				return Finding{Rule: "secret", Start: i, End: i + len(e.text)}, true
			}
			continue
		}
		if !foldPrefix(t.s[i:], e.text) {
			continue
		}
		if start, end, ok := e.rule.match(t, i); ok {
			return Finding{Rule: e.rule.name, Start: start, End: end}, true
		}
	}
	return Finding{}, false
}

// foldPrefix reports whether s starts with the lower-case prefix, ignoring case.
func foldPrefix(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// settle sorts findings, joins overlapping ones, keeps masks whole and drops findings inside a mask.
func settle(s string, found []Finding) []Finding {
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	var out []Finding
	for _, f := range found {
		if n := len(out); n > 0 && f.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, f.End)
			continue
		}
		out = append(out, f)
	}
	return wholeMasks(s, out)
}

// wholeMasks widens findings that cut a mask, and drops those inside one.
func wholeMasks(s string, found []Finding) []Finding {
	kept := found[:0]
	at, next := 0, strings.Index(s, Mask)
	for _, f := range found {
		inside := false
		for next >= 0 && at+next < f.End {
			start, end := at+next, at+next+len(Mask)
			if end > f.Start {
				if start <= f.Start && f.End <= end {
					inside = true
					break
				}
				f.Start, f.End = min(f.Start, start), max(f.End, end)
			}
			at = end
			next = strings.Index(s[at:], Mask)
		}
		switch n := len(kept); {
		case inside:
		case n > 0 && f.Start < kept[n-1].End:
			kept[n-1].End = max(kept[n-1].End, f.End)
		default:
			kept = append(kept, f)
		}
	}
	return kept
}
