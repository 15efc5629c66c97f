// Package paint turns texts into lines for a terminal: Markdown, differences of files, plain text. Lines fit a width
// and contain no control characters except those that set colours, whatever the texts contain. It is pure.
package paint

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/zephbot/zephbot/bot/visible"
)

// Look is how a piece of text looks. Looks are combined by addition of their bits.
type Look uint16

// The looks.
const (
	Plain Look = 0
	Bold  Look = 1 << iota
	Dim
	Italic
	Strike
	Reverse
	Red
	Green
	Yellow
	Blue
	Magenta
	Cyan
)

// sgrCodes are the SGR parameters of the looks, by bit.
func (l Look) sgrCodes() string {
	var list []string
	for _, c := range []struct {
		look Look
		code string
	}{
		{Bold, "1"},
		{Dim, "2"},
		{Italic, "3"},
		{Strike, "9"},
		{Reverse, "7"},
		{Red, "31"},
		{Green, "32"},
		{Yellow, "33"},
		{Blue, "34"},
		{Magenta, "35"},
		{Cyan, "36"},
	} {
		if l&c.look != 0 {
			list = append(list, c.code)
		}
	}
	return strings.Join(list, ";")
}

// Painter paints for one terminal. The zero value paints without colours. Safe for concurrent use.
type Painter struct {
	Colour bool
}

// Piece is text with one look.
type Piece struct {
	Text string
	Look Look
}

// Paint returns text in a look; control characters in it become signs.
func (p Painter) Paint(look Look, text string) string {
	return p.paintRaw(look, visible.Controls(strings.ReplaceAll(text, "\t", "    ")))
}

func (p Painter) paintRaw(look Look, text string) string {
	if !p.Colour || look == Plain || text == "" {
		return text
	}
	return "\x1b[" + look.sgrCodes() + "m" + text + "\x1b[0m"
}

// Line paints pieces one after the other.
func (p Painter) Line(pieces ...Piece) string {
	var b strings.Builder
	for _, piece := range pieces {
		b.WriteString(p.Paint(piece.Look, piece.Text))
	}
	return b.String()
}

// Text returns text as lines of at most width columns, in one look.
func (p Painter) Text(look Look, text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(visible.Controls(strings.TrimRight(text, "\n")), "\n") {
		lines = append(lines, p.paintLines(wrapCells(cellsOf(line, look, true), width, "", ""))...)
	}
	return lines
}

// Cut returns text as one line of at most width columns; what is cut is replaced by "…".
func (p Painter) Cut(look Look, text string, width int) string {
	text = visible.Controls(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
	if Width(text) <= width {
		return p.paintRaw(look, text)
	}
	var b strings.Builder
	used := 0
	for it := graphemes.FromString(text); it.Next(); {
		w := displaywidth.String(it.Value())
		if used+w > width-1 {
			break
		}
		b.WriteString(it.Value())
		used += w
	}
	return p.paintRaw(look, b.String()+"…")
}

// Width returns how many columns a text without control characters takes.
func Width(text string) int { return displaywidth.String(text) }

// cell is one character as a person sees it.
type cell struct {
	text  string
	width int
	look  Look
	code  bool // it is broken anywhere, and its blanks count
}

// cellsOf splits a line into cells. Tabs become blanks.
func cellsOf(line string, look Look, words bool) []cell {
	var list []cell
	for it := graphemes.FromString(strings.ReplaceAll(line, "\t", "    ")); it.Next(); {
		list = append(list, cell{text: it.Value(), width: displaywidth.String(it.Value()), look: look, code: !words})
	}
	return list
}

// wrapCells breaks cells into rows of at most width columns, with first before the first
// row and rest before the others.
func wrapCells(cells []cell, width int, first, rest string) [][]cell {
	var rows [][]cell
	lead := cellsOf(first, Dim, true)
	room := max(1, width-Width(first))
	for {
		end, next := breakAt(cells, room)
		rows = append(rows, append(slices.Clip(lead), cells[:end]...))
		if next >= len(cells) {
			return rows
		}
		cells = cells[next:]
		lead, room = cellsOf(rest, Dim, true), max(1, width-Width(rest))
	}
}

// breakAt returns where a row of at most room columns ends, and where the next one begins.
func breakAt(cells []cell, room int) (end, next int) {
	used, blank := 0, -1
	for i, c := range cells {
		if c.text == " " && !c.code {
			blank = i
		}
		if used += c.width; used <= room {
			continue
		}
		switch {
		case c.text == " " && !c.code:
			return i, skipBlanks(cells, i)
		case blank > 0:
			return blank, skipBlanks(cells, blank)
		}
		return max(1, i), max(1, i)
	}
	return len(cells), len(cells)
}

func skipBlanks(cells []cell, i int) int {
	for i < len(cells) && cells[i].text == " " && !cells[i].code {
		i++
	}
	return i
}

// paintLines paints rows of cells.
func (p Painter) paintLines(rows [][]cell) []string {
	list := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for len(row) > 0 {
			n := 1
			for n < len(row) && row[n].look == row[0].look {
				n++
			}
			var part strings.Builder
			for _, c := range row[:n] {
				part.WriteString(c.text)
			}
			b.WriteString(p.paintRaw(row[0].look, part.String()))
			row = row[n:]
		}
		list[i] = b.String()
	}
	return list
}
