package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
)

// group is the part of an order to erase: the lines of one file.
type group struct {
	receipt string
	part    int
}

// tally is what the lines of a group amount to, and what the line that accounts for them says.
type tally struct {
	first problemAt // of the rewritten lines
	lines int64
	sum   hash.Hash
	said  *ledger // nil = no line accounts for the group
	at    string
}

func (v *verifier) tallyOf(receipt string, part int) *tally {
	key := group{receipt, part}
	if v.groups[key] == nil {
		v.groups[key] = &tally{sum: sha256.New()}
	}
	return v.groups[key]
}

// countVersions counts what was rewritten in a line, and what a line says about others.
func (v *verifier) countVersions(r *record, hash string) {
	for i, e := range r.Erased {
		to := hash
		if i+1 < len(r.Erased) {
			to = r.Erased[i+1].From
		}
		t := v.tallyOf(e.Receipt, e.Part)
		if t.lines == 0 {
			t.first = v.problemPlace(r)
		}
		t.lines++
		addPair(t.sum, e.From, to)
	}
	if r.Kind == kindErased {
		t := v.tallyOf(r.Receipt, r.Part)
		t.said, t.at = &r.ledger, r.Timestamp
	}
}

// checkErasures compares the rewritten lines with what accounts for them.
func (v *verifier) checkErasures() {
	byReceipt := map[string]*Pseudonym{}
	for key, t := range v.groups {
		note := byReceipt[key.receipt]
		if note == nil {
			note = &Pseudonym{Receipt: key.receipt}
			byReceipt[key.receipt] = note
		}
		note.At = max(note.At, t.at)
		switch {
		case t.said == nil:
			v.problemAt(t.first, Changed, fmt.Sprintf(
				"it was rewritten as if by order %s, but no line of the log accounts for that", key.receipt,
			))
		case t.lines == 0:
			note.Gone += t.said.Lines
		case t.lines != t.said.Lines || hex.EncodeToString(t.sum.Sum(nil)) != t.said.Digest:
			v.problemAt(t.first, Changed, fmt.Sprintf(
				"among the %d lines from here that order %s has rewritten (%d according to the log), some were "+
					"changed, added or removed",
				t.lines, key.receipt, t.said.Lines))
		}
		note.Lines += t.lines
	}
	for _, note := range byReceipt {
		v.report.Erased = append(v.report.Erased, *note)
	}
	slices.SortFunc(v.report.Erased, func(a, b Pseudonym) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Receipt, b.Receipt))
	})
}

// checkRemoval checks that what is missing before the first line was removed by retention.
func (v *verifier) checkRemoval() {
	switch f := v.first; {
	case f == nil || f.hash == "":
	case v.gone != nil:
		v.report.Removed = v.gone
	default:
		v.problemAt(f.problemAt, Missing,
			"it continues a chain whose earlier lines are not here: name their files too, the oldest first")
	}
}
