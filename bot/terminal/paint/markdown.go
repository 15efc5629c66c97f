package paint

import (
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/syntax"
	"github.com/zephbot/zephbot/bot/visible"
)

// Markdown renders Markdown as lines of at most width columns.
func (p Painter) Markdown(src string, width int) []string {
	src = visible.Controls(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src))
	m := render.Whole(src)
	if m.Text == "" {
		return nil
	}
	return p.Message(m.Text, m.Entities, width)
}

// Message renders text with entities as lines of at most width columns.
func (p Painter) Message(text string, entities []render.Entity, width int) []string {
	var lines []string
	for _, line := range p.splitLines(visible.Controls(text), text, entities) {
		lines = append(lines, p.paintLines(line.wrapRows(width))...)
	}
	return lines
}

// line is one line of a message before it is wrapped.
type line struct {
	cells  []cell
	quoted bool
	code   bool
}

// wrapRows wraps a line. Code is indented, quotes have a bar, and what continues an item of a list is below its text.
func (l line) wrapRows(width int) [][]cell {
	lead := ""
	if l.quoted {
		lead = "│ "
	}
	if l.code {
		lead += "  "
		return wrapCells(l.cells, width, lead, lead)
	}
	return wrapCells(l.cells, width, lead, lead+strings.Repeat(" ", min(hangColumns(l.cells), width/3)))
}

// hangColumns returns how many columns the marker of an item of a list takes, with the blanks around it.
func hangColumns(cells []cell) int {
	i := 0
	for i < len(cells) && cells[i].text == " " {
		i++
	}
	start := i
	for i < len(cells) && i-start < 5 && isMarker(cells[i].text) {
		i++
	}
	if i == start || i >= len(cells) || cells[i].text != " " {
		return start
	}
	if first := cells[start].text; i-start == 1 && first >= "0" && first <= "9" {
		return start // a number, not a marker
	}
	return i + 1
}

func isMarker(text string) bool {
	return strings.ContainsAny(text, "•☐☑") ||
		len(text) == 1 && (text[0] >= '0' && text[0] <= '9' || text == "." || text == ")")
}

// marks are what the characters of a message are, by their UTF-16 offset.
type marks struct {
	looks  []Look
	code   []bool
	quoted []bool
	pre    []bool
	after  map[int]string // what follows at an offset
}

func (p Painter) marksOf(text string, entities []render.Entity) marks {
	n := render.Length(text) + 1
	m := marks{make([]Look, n), make([]bool, n), make([]bool, n), make([]bool, n), map[int]string{}}
	units := []rune(text)
	for _, e := range entities {
		end := min(n-1, e.Offset+e.Length)
		for i := max(0, e.Offset); i < end; i++ {
			m.looks[i] |= lookOf(e.Type)
			m.quoted[i] = m.quoted[i] || strings.HasSuffix(e.Type, "blockquote")
			m.pre[i] = m.pre[i] || e.Type == "pre"
			m.code[i] = m.code[i] || e.Type == "code" || e.Type == "pre"
		}
		if e.Type == "pre" && p.Colour && syntax.Known(e.Language) {
			m.highlightCode(textBetween(units, e.Offset, end), e)
		}
		if label := textBetween(units, e.Offset, end); e.Type == "text_link" && !sameLink(label, e.URL) {
			m.after[end] += " (" + visible.Controls(e.URL) + ")"
		}
		if e.Type == "code" && !p.Colour {
			m.after[e.Offset] += "`"
			m.after[end] += "`"
		}
	}
	return m
}

// highlightCode gives the parts of a code block the looks of comments, strings and the like. What is none of them is
// plain from the first letter on, so that an answer does not change its look while it grows.
func (m *marks) highlightCode(code string, e render.Entity) {
	at := max(0, e.Offset)
	for _, piece := range syntax.Divide(code, e.Language) {
		end := min(len(m.looks)-1, at+render.Length(piece.Text))
		for ; at < end; at++ {
			m.looks[at] = m.looks[at]&^lookOf("pre") | lookOfCode(piece.Kind)
		}
	}
}

func lookOfCode(kind syntax.Kind) Look {
	switch kind {
	case syntax.Plain:
	case syntax.Comment:
		return Dim
	case syntax.String, syntax.Added:
		return Green
	case syntax.Number:
		return Magenta
	case syntax.Word:
		return Blue
	case syntax.Removed:
		return Red
	}
	return Plain
}

// textBetween returns the text between two UTF-16 offsets.
func textBetween(text []rune, start, end int) string {
	var b strings.Builder
	at := 0
	for _, r := range text {
		if at >= start && at < end {
			b.WriteRune(r)
		}
		if at++; r > 0xFFFF {
			at++
		}
	}
	return b.String()
}

// sameLink reports whether a label says where its link leads.
func sameLink(label, url string) bool {
	bare := func(s string) string {
		for _, prefix := range []string{"https://", "http://", "mailto:"} {
			s = strings.TrimPrefix(s, prefix)
		}
		return strings.TrimSuffix(s, "/")
	}
	return bare(strings.TrimSpace(label)) == bare(url)
}

func lookOf(kind string) Look {
	switch kind {
	case "bold":
		return Bold
	case "italic":
		return Italic
	case "strikethrough":
		return Strike
	case "code", "pre":
		return Cyan
	case "text_link":
		return Blue
	}
	return Plain
}

// splitLines returns the lines of a message with their looks. shown is text with signs for control characters; where
// they differ, offsets are those of text, and so the looks are left out.
func (p Painter) splitLines(shown, text string, entities []render.Entity) []line {
	if shown != text {
		entities = nil
	}
	m := p.marksOf(text, entities)
	var list []line
	var current line
	var part strings.Builder
	var look Look
	var code bool
	flush := func() {
		current.cells = append(current.cells, cellsOf(part.String(), look, !code)...)
		part.Reset()
	}
	add := func(text string, l Look, c bool) {
		if l != look || c != code {
			flush()
			look, code = l, c
		}
		part.WriteString(text)
	}
	at := 0
	for _, r := range shown {
		if more := m.after[at]; more != "" {
			add(more, Dim, false)
		}
		i := min(at, len(m.looks)-1)
		if r == '\n' {
			flush()
			list = append(list, current)
			current = line{quoted: m.quoted[i] && i+1 < len(m.quoted) && m.quoted[i+1]}
		} else {
			current.quoted = current.quoted || m.quoted[i]
			current.code = current.code || m.pre[i]
			add(string(r), m.looks[i], m.code[i] && (m.pre[i] || !unicode.IsSpace(r)))
		}
		if at++; r > 0xFFFF {
			at++
		}
	}
	add(m.after[at], Dim, false)
	flush()
	return append(list, current)
}
