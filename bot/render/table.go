package render

import (
	"bytes"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// table writes a table as aligned text in a code block, because Telegram has no tables. Links cannot be in code, so
// they are listed below it.
func (w *writer) table(n *extast.Table) {
	var (
		rows  [][]string
		links []linkedText
	)
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		add := func(sub *writer) {
			cells = append(cells, strings.Join(strings.Fields(sub.text), " "))
			links = append(links, sub.links...)
		}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			sub := &writer{src: w.src, root: w.root, cell: true}
			sub.inlines(c)
			add(sub)
		}
		for _, cell := range surplus(w.src[max(0, row.Pos()):], len(n.Alignments)) {
			add(w.piece(cell))
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

// surplus lists the cells of the row at the start of src that are beyond its last column. The parser drops them, as
// CommonMark's tables do; here they are shown.
func surplus(src []byte, columns int) []string {
	line, _, _ := bytes.Cut(src, []byte{'\n'})
	line = bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(line), []byte{'|'}), []byte{'|'})
	var cells []string
	start := 0
	for i := range len(line) + 1 {
		if i < len(line) && (line[i] != '|' || i > 0 && line[i-1] == '\\') {
			continue
		}
		if columns--; columns < 0 {
			cells = append(cells, strings.ReplaceAll(string(line[start:i]), `\|`, "|"))
		}
		start = i + 1
	}
	return cells
}

// piece renders the Markdown of one cell separately.
func (w *writer) piece(src string) *writer {
	sub := &writer{src: []byte(strings.TrimSpace(src)), cell: true}
	sub.root = sharedParser().Parse(text.NewReader(sub.src))
	sub.blocks(sub.root)
	return sub
}

// maxColumn is the maximum width to which a column is padded. A longer cell would fill every row with spaces and let a
// small table grow to megabytes.
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

// gridRow writes a row up to its last non-empty cell.
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

// ruleBelowTable makes a line of dashes directly below a table a rule, as intended. In CommonMark it turns the lines
// above into a heading, which the parser would put after the table that it finds in them.
type ruleBelowTable struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (r ruleBelowTable) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	above := pc.LastOpenedBlock().Node
	if above == nil || !ast.IsParagraph(above) || above.Parent() != parent {
		return nil, parser.NoChildren
	}
	line, _ := reader.PeekLine()
	if len(bytes.Trim(line, " -\n")) > 0 || !holdsTable(above.Lines(), reader.Source()) {
		return nil, parser.NoChildren
	}
	reader.AdvanceToEOL()
	return ast.NewThematicBreak(), parser.NoChildren
}

// holdsTable reports whether one of the lines is the line below a table's header.
func holdsTable(lines *text.Segments, src []byte) bool {
	for i := range lines.Len() {
		at := lines.At(i)
		line := bytes.TrimSpace(at.Value(src))
		if bytes.ContainsRune(line, '|') && bytes.ContainsRune(line, '-') && len(bytes.Trim(line, " |:-\t")) == 0 {
			return true
		}
	}
	return false
}
