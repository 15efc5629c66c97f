package audit

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// gap is the first line that does not follow the one before.
type gap struct {
	at    problemAt
	index int    // of its problem
	hash  string // of the line
	prev  string // that it names
	chain string // of the line before
}

// reportBreak reports a line that does not follow the one before, and remembers the first one.
func (v *verifier) reportBreak(r *record, link string, kind Kind, text string) {
	if v.gap == nil && len(v.report.Problems) < maxProblems {
		v.gap = &gap{at: v.problemPlace(r), index: len(v.report.Problems), hash: link, prev: r.PrevHash, chain: v.chain}
	}
	v.addProblem(v.problemPlace(r), kind, text)
}

// problemAt adds a problem at its place among those of other lines.
func (v *verifier) problemAt(at problemAt, kind Kind, text string) {
	v.late = append(v.late, Problem{File: at.file, Line: at.line, Time: at.time, Kind: kind, Text: text})
}

// seen is where a line is.
type seen struct {
	problemAt
	number int // among all lines
	found  bool
}

// clues are what a second reading finds out about a gap.
type clues struct {
	parent seen // the line that the bad one names
	twin   seen // another line with the hash of the bad one
	child  seen // a line that names the one before the gap, other than right after it
	gap    seen
	after  string // what the line after the bad one names
	branch seen   // the line after parent

	want      *gap
	number    int  // of the line that is read
	branching bool // the line before was parent
}

// explainGap says what happened at the first gap, and moves its problem to the first line that is wrong. It reads the
// files again if it can.
func (v *verifier) explainGap(files []File) error {
	for _, f := range files {
		if _, ok := f.Reader.(io.Seeker); !ok {
			return nil
		}
	}
	c, err := v.searchClues(files)
	if err != nil {
		return err
	}
	p := &v.report.Problems[v.gap.index]
	switch {
	case c.explainMoved(p), c.explainAdded(p, v.gap):
	case v.gap.prev == "", v.gap.index > 0: // what comes before is wrong already
	case v.lostFile(files):
		p.Text = "a file of the chain is missing: this one follows a line that is in none of the files here"
	default:
		p.Text = "it does not follow the line before: lines between them were removed, or the line before was " +
			"rewritten with its hash"
	}
	return nil
}

// explainMoved explains a gap by lines of the log that are elsewhere.
func (c *clues) explainMoved(p *Problem) bool {
	later := c.child.found && c.child.number > c.gap.number
	switch {
	case c.twin.found && c.twin.number < c.gap.number:
		p.Kind, p.Text = Reordered, "it is a copy of "+c.twin.place()+": it was added"
	case c.parent.found && (c.parent.number > c.gap.number || later):
		p.Kind, p.Text = Reordered, "it follows "+c.parent.place()+": lines were moved"
		if later {
			p.Text += "; the line that belongs here is " + c.child.place()
		}
	default:
		return false
	}
	return true
}

// explainAdded explains a gap by lines that are not from the log.
func (c *clues) explainAdded(p *Problem, g *gap) bool {
	switch {
	case c.after != "" && c.after == g.chain:
		p.Kind, p.Text = Foreign, "it was added: the line after it follows the one before it"
	case c.parent.found && c.branch.found:
		*p = Problem{File: c.branch.file, Line: c.branch.line, Time: c.branch.time, Kind: Foreign, Text: fmt.Sprintf(
			"it was added, like all lines from here to the one before %s, which follows %s",
			c.gap.place(), c.parent.place(),
		)}
	case c.child.found:
		p.Kind, p.Text = Foreign, "it is no line of this log: the line that belongs here is "+c.child.place()
	default:
		return false
	}
	return true
}

// lostFile reports whether the gap is between two files.
func (v *verifier) lostFile(files []File) bool {
	return v.gap.at.line == 1 && len(files) > 1
}

func (s seen) place() string { return fmt.Sprintf("%s:%d", s.file, s.line) }

// searchClues reads the files again.
func (v *verifier) searchClues(files []File) (clues, error) {
	c := clues{want: v.gap}
	for _, f := range files {
		if _, err := f.Reader.(io.Seeker).Seek(0, io.SeekStart); err != nil { //nolint:forcetypeassert // explain has looked
			return c, fmt.Errorf("read audit log: %w", err)
		}
		line := 0
		err := scanLines(f.Reader, func(raw []byte) {
			line++
			c.number++
			if _, _, ok := unsealLine(bytes.TrimSuffix(raw, []byte("\n"))); !ok || !c.isWorthDecoding(raw) {
				return
			}
			if r, ok := parseLine(raw); ok {
				c.seeRecord(&r, seen{problemAt: problemAt{f.Name, line, r.Timestamp}, number: c.number, found: true})
			}
		})
		if err != nil {
			return c, fmt.Errorf("read audit log: %w", err)
		}
	}
	return c, nil
}

// seeRecord takes a line into account.
func (c *clues) seeRecord(r *record, here seen) {
	g := c.want
	if c.branching {
		c.branch, c.branching = here, false
	}
	if c.gap.found && here.number == c.gap.number+1 {
		c.after = r.PrevHash
	}
	if here.file == g.at.file && here.line == g.at.line {
		c.gap = here
		return
	}
	if r.hash == g.hash && !c.twin.found {
		c.twin = here
	}
	if r.hash == g.prev && !c.parent.found {
		c.parent, c.branching = here, true
	}
	if r.PrevHash == g.chain && !c.child.found {
		c.child = here
	}
}

// isWorthDecoding reports whether a line has to be decoded.
func (c *clues) isWorthDecoding(raw []byte) bool {
	if c.branching || c.gap.found && c.number == c.gap.number+1 {
		return true
	}
	for _, hash := range []string{c.want.hash, c.want.prev, c.want.chain} {
		if hash != "" && bytes.Contains(raw, []byte(hash)) {
			return true
		}
	}
	return false
}

// sortProblems puts the problems in the order of the lines.
func (v *verifier) sortProblems(files []File) {
	order := func(p Problem) int {
		return slices.IndexFunc(files, func(f File) bool { return f.Name == p.File })
	}
	list := append(v.report.Problems, v.late...)
	slices.SortStableFunc(list, func(a, b Problem) int {
		switch { // what is about the whole log comes last
		case a.Line == 0 || b.Line == 0:
			return boolInt(a.Line == 0) - boolInt(b.Line == 0)
		case order(a) != order(b):
			return order(a) - order(b)
		default:
			return a.Line - b.Line
		}
	})
	v.report.Problems = list
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
