package paint

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/zephbot/zephbot/bot/visible"
)

// Limits of a difference that is shown.
const (
	// maxDiff is the most bytes of both texts that are compared.
	maxDiff = 1 << 20
	context = 3 // unchanged lines around a change
)

// Diff returns the difference between two texts of a file as lines of at most width columns, in the unified format:
// every line begins with "+", "-" or a blank, and hunks with "@@". If there are more than limit lines, the rest is
// counted; 0 = no limit. Texts of more than maxDiff bytes are not compared: ok is false then, and if they are equal.
func (p Painter) Diff(before, after string, width, limit int) (lines []string, ok bool) {
	if len(before)+len(after) > maxDiff || before == after {
		return nil, false
	}
	edits := udiff.Lines(before, after)
	unified, err := udiff.ToUnified("a", "b", before, edits, context)
	if err != nil {
		return nil, false
	}
	source := strings.Split(strings.TrimSuffix(unified, "\n"), "\n")
	if len(source) < 3 {
		return nil, false
	}
	source = source[2:] // the names of the files are said elsewhere
	left := 0
	if limit > 0 && len(source) > limit {
		left, source = len(source)-limit, source[:limit]
	}
	for _, line := range source {
		lines = append(lines, p.diffLine(line, width)...)
	}
	if left > 0 {
		lines = append(lines, p.paintRaw(Dim, fmt.Sprintf("… +%d", left)))
	}
	return lines, true
}

// diffLine paints one line of a difference. What does not fit continues behind a blank.
func (p Painter) diffLine(line string, width int) []string {
	look := Plain
	switch {
	case strings.HasPrefix(line, "@@"):
		return []string{p.Cut(Cyan, line, width)}
	case strings.HasPrefix(line, "+"):
		look = Green
	case strings.HasPrefix(line, "-"):
		look = Red
	case strings.HasPrefix(line, `\`):
		look = Dim
	}
	return p.paintLines(wrapCells(
		cellsOf(visible.Controls(strings.TrimSuffix(line, "\r")), look, false), width, "", " ",
	))
}

// Count returns how many lines a change adds and removes.
func Count(before, after string) (added, removed int) {
	if len(before)+len(after) > maxDiff {
		return 0, 0
	}
	unified, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), 0)
	if err != nil {
		return 0, 0
	}
	for i, line := range strings.Split(unified, "\n") {
		switch {
		case i < 2:
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}
