package render

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
	extast "github.com/yuin/goldmark/extension/ast"
)

// table writes a table as aligned text in a code block, because Telegram has no
// tables. Links cannot be in code, so they follow below.
func (w *writer) table(n *extast.Table) {
	var (
		rows  [][]string
		links []linkedText
	)
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			sub := &writer{src: w.src, root: w.root, cell: true}
			sub.inlines(c)
			cells = append(cells, strings.Join(strings.Fields(sub.text), " "))
			links = append(links, sub.links...)
		}
		rows = append(rows, cells)
	}
	w.code(grid(rows, n.Alignments), "")
	if len(links) == 0 {
		return
	}
	gap := w.gap
	w.gap = 1
	w.separate(true)
	w.gap = gap
	for i, l := range links {
		if i > 0 {
			w.write(" · ")
		}
		w.within(kindLink, Entity{Type: "text_link", URL: l.url}, func() { w.write(l.label) })
	}
}

// maxColumn is the widest column that is padded. A longer cell would fill every row
// with space and let a small table grow to megabytes.
const maxColumn = 60

// grid aligns the cells for a fixed-width font; the first row is the header.
func grid(rows [][]string, align []extast.Alignment) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = min(maxColumn, max(widths[i], displaywidth.String(cell)))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		b.WriteString(gridRow(row, widths, align))
		b.WriteByte('\n')
		if i == 0 {
			b.WriteString(gridRule(widths))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// gridRow writes a row up to its last cell with text.
func gridRow(row []string, widths []int, align []extast.Alignment) string {
	for len(row) > 1 && row[len(row)-1] == "" {
		row = row[:len(row)-1]
	}
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString(" | ")
		}
		fill := max(0, widths[i]-displaywidth.String(cell))
		left := 0
		if i < len(align) {
			switch align[i] {
			case extast.AlignRight:
				left = fill
			case extast.AlignCenter:
				left = fill / 2
			}
		}
		b.WriteString(strings.Repeat(" ", left) + cell + strings.Repeat(" ", fill-left))
	}
	return strings.TrimRight(b.String(), " ")
}

func gridRule(widths []int) string {
	parts := make([]string, len(widths))
	for i, width := range widths {
		parts[i] = strings.Repeat("-", width)
	}
	return strings.Join(parts, "-+-")
}
