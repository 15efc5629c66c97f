package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// The limits of a rich message (Bot API 10.1).
const (
	richChars   = 32768
	richBlocks  = 500 // with nested ones, rows and items
	richLevels  = 16
	richColumns = 20
)

// richBlock is a block of a rich message (Bot API InputRichBlock), with the fields of all kinds.
type richBlock struct {
	Type       string       `json:"type"`
	Text       any          `json:"text,omitempty"` // string, richSpan, or a list of both
	Size       int          `json:"size,omitempty"`
	Language   string       `json:"language,omitempty"`
	Expression string       `json:"expression,omitempty"`
	Items      []richItem   `json:"items,omitempty"`
	Blocks     []richBlock  `json:"blocks,omitempty"`
	Cells      [][]richCell `json:"cells,omitempty"`
	Bordered   bool         `json:"is_bordered,omitempty"`
}

// richSpan is formatted text (Bot API RichText).
type richSpan struct {
	Type       string `json:"type"`
	Text       any    `json:"text,omitempty"`
	URL        string `json:"url,omitempty"`
	Expression string `json:"expression,omitempty"`
}

type richItem struct {
	Blocks  []richBlock `json:"blocks"`
	Box     bool        `json:"has_checkbox,omitempty"`
	Checked bool        `json:"is_checked,omitempty"`
	Value   int         `json:"value,omitempty"`
	Type    string      `json:"type,omitempty"`
}

type richCell struct {
	Text   any    `json:"text,omitempty"`
	Header bool   `json:"is_header,omitempty"`
	Align  string `json:"align"`
	Valign string `json:"valign"`
}

// Rich renders src as one rich message: the JSON of a Bot API InputRichMessage. It is built from blocks, so that
// nothing in src is markup of the server, which would fetch pictures from addresses that a model was made to write. ok
// is false if src has nothing that text with entities cannot show as well, such as a table, a formula or a heading, or
// exceeds a limit. Safe for concurrent use.
func Rich(src string) (message []byte, ok bool) {
	src = normalize(src)
	if len(src) > maxMarkdown || hostile(src) {
		return nil, false
	}
	r := &richWriter{writer: writer{src: []byte(src), gap: 2}}
	r.root = sharedParser().Parse(text.NewReader(r.src))
	blocks := r.blocks(r.root, 1)
	if !r.gains || r.over || r.count > richBlocks || r.chars > richChars || len(blocks) == 0 {
		return nil, false
	}
	message, err := json.Marshal(map[string]any{"blocks": blocks})
	return message, err == nil
}

// richWriter renders the syntax tree as blocks.
type richWriter struct {
	writer
	count, chars int
	gains        bool // something is better than text with entities
	over         bool // a limit is exceeded
}

func (r *richWriter) blocks(parent ast.Node, level int) (list []richBlock) {
	if level > richLevels {
		r.over = true
		return nil
	}
	for n := parent.FirstChild(); n != nil && !r.over; n = n.NextSibling() {
		for _, b := range r.block(n, level) {
			r.count++
			list = append(list, b)
		}
	}
	return list
}

func (r *richWriter) block(n ast.Node, level int) []richBlock {
	switch n := n.(type) {
	case *ast.Heading:
		r.gains = true
		return r.withText(richBlock{Type: "heading", Size: n.Level}, r.inlines(n))
	case *ast.Paragraph, *ast.TextBlock:
		return r.withText(richBlock{Type: "paragraph"}, r.inlines(n))
	case *ast.List:
		return []richBlock{r.list(n, level)}
	case *ast.Blockquote:
		return nonEmpty(richBlock{Type: "blockquote", Blocks: r.blocks(n, level+1)})
	case *ast.FencedCodeBlock:
		return r.pre(n, language(n.Language(r.src)))
	case *ast.CodeBlock:
		return r.pre(n, "")
	case *formula:
		return r.formula(r.lines(n))
	case *ast.ThematicBreak:
		return []richBlock{{Type: "divider"}}
	case *extast.Table:
		return []richBlock{r.richTable(n)}
	default: // what is rare is written as text
		return r.plain(n)
	}
}

// plain renders a block as unformatted text.
func (r *richWriter) plain(n ast.Node) []richBlock {
	sub := &writer{src: r.src, root: r.root, gap: 2, bol: true, used: r.used}
	sub.block(n)
	return r.withText(richBlock{Type: "paragraph"}, r.said(sub.document.text))
}

// withText returns a block if its text is more than space.
func (r *richWriter) withText(b richBlock, list []any) []richBlock {
	if blank(richText(list)) {
		return nil
	}
	b.Text = unwrapped(list)
	return []richBlock{b}
}

func nonEmpty(b richBlock) []richBlock {
	if len(b.Blocks) == 0 {
		return nil
	}
	return []richBlock{b}
}

func (r *richWriter) pre(n ast.Node, lang string) []richBlock {
	s := strings.TrimRight(clean(r.lines(n)), "\n ")
	return r.withText(richBlock{Type: "pre", Language: lang}, r.said(s))
}

// formula renders the lines of a formula, without their marks.
func (r *richWriter) formula(lines string) []richBlock {
	r.gains = true
	expression := unmarked(clean(lines))
	r.chars += Length(expression)
	if blank(expression) {
		return nil
	}
	return []richBlock{{Type: "mathematical_expression", Expression: expression}}
}

// unmarked returns a formula without its marks.
func unmarked(s string) string {
	s = strings.TrimSpace(s)
	opening, closing := mathMarks([]byte(s))
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, opening), closing))
}

func (r *richWriter) list(n *ast.List, level int) richBlock {
	b := richBlock{Type: "list"}
	number := n.Start
	for item := n.FirstChild(); item != nil && !r.over; item = item.NextSibling() {
		i := richItem{Blocks: r.blocks(item, level+1)}
		if first := item.FirstChild(); first != nil {
			if task, ok := first.FirstChild().(*extast.TaskCheckBox); ok {
				i.Box, i.Checked, r.gains = true, task.IsChecked, true
			}
		}
		if n.IsOrdered() {
			i.Value, i.Type = number, "1"
		}
		if len(i.Blocks) == 0 { // an item has at least one block
			r.count++
			i.Blocks = []richBlock{{Type: "paragraph", Text: " "}}
		}
		r.count++
		b.Items = append(b.Items, i)
		number++
	}
	return b
}

// richTable renders a table; every row has the same number of cells, and none is left out.
func (r *richWriter) richTable(n *extast.Table) richBlock {
	r.gains = true
	b := richBlock{Type: "table", Bordered: true}
	columns := len(n.Alignments)
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		r.count++
		_, header := row.(*extast.TableHeader)
		var cells []richCell
		add := func(list []any) {
			cell := richCell{Header: header, Align: align(n.Alignments, len(cells)), Valign: "middle"}
			if !blank(richText(list)) {
				cell.Text = unwrapped(list)
			}
			cells = append(cells, cell)
		}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			add(r.inlines(c))
		}
		for _, rest := range surplus(r.src[max(0, row.Pos()):], len(n.Alignments)) {
			add(r.said(r.piece(rest).text))
		}
		b.Cells = append(b.Cells, cells)
		columns = max(columns, len(cells))
	}
	for i := range b.Cells {
		for len(b.Cells[i]) < columns && columns <= richColumns {
			b.Cells[i] = append(b.Cells[i], richCell{Header: i == 0, Align: "left", Valign: "middle"})
		}
	}
	r.over = r.over || columns > richColumns
	return b
}

func align(list []extast.Alignment, column int) string {
	if column < len(list) {
		switch list[column] {
		case extast.AlignRight:
			return "right"
		case extast.AlignCenter:
			return "center"
		}
	}
	return "left"
}

func (r *richWriter) inlines(parent ast.Node) (list []any) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		list = append(list, r.inline(n)...)
	}
	return list
}

func (r *richWriter) inline(n ast.Node) []any {
	switch n := n.(type) {
	case *ast.Text:
		return r.textNode(n)
	case *formulaSpan:
		expression := unmarked(clean(string(n.Segment.Value(r.src))))
		r.gains = true
		r.chars += Length(expression)
		return []any{richSpan{Type: "mathematical_expression", Expression: expression}}
	case *ast.CodeSpan:
		return r.span("code", r.said(r.textOf(n)))
	case *ast.Emphasis:
		if n.Level == 1 {
			return r.span("italic", r.inlines(n))
		}
		return r.span("bold", r.inlines(n))
	case *extast.Strikethrough:
		return r.span("strikethrough", r.inlines(n))
	case *spoiler:
		return r.span("spoiler", r.inlines(n))
	case *ast.Link:
		return r.link(n, unescape(string(n.Destination)), r.inlines(n))
	case *ast.Image:
		return r.link(n, unescape(string(n.Destination)), r.said(r.textOf(n)))
	case *ast.AutoLink:
		label := string(n.Label(r.src))
		if href, ok := linkURL(string(n.URL(r.src))); ok {
			return r.url(href, r.said(label))
		}
		return r.said(label)
	case *extast.TaskCheckBox: // the item has it
		return nil
	default:
		sub := &writer{src: r.src, root: r.root, cell: true}
		sub.inline(n)
		return r.said(sub.text)
	}
}

func (r *richWriter) textNode(n *ast.Text) []any {
	s := string(n.Value(r.src))
	if !n.IsRaw() {
		s = unescape(s)
	}
	list := r.said(clean(s))
	if n.SoftLineBreak() || n.HardLineBreak() {
		list = append(list, r.said("\n")...)
	}
	return list
}

// said counts a text and returns it; none if it is empty.
func (r *richWriter) said(s string) []any {
	if s == "" {
		return nil
	}
	r.chars += Length(s)
	return []any{s}
}

// span formats a text; white space alone is not formatted.
func (*richWriter) span(kind string, list []any) []any {
	if blank(richText(list)) {
		return list
	}
	return []any{richSpan{Type: kind, Text: unwrapped(list)}}
}

func (r *richWriter) url(href string, list []any) []any {
	if blank(richText(list)) {
		list = r.said(href)
	}
	return []any{richSpan{Type: "url", URL: href, Text: unwrapped(list)}}
}

// link returns a link, or its text with the target if Telegram could not open that.
func (r *richWriter) link(n ast.Node, target string, label []any) []any {
	if href, ok := linkURL(target); ok {
		return r.url(href, label)
	}
	shown := shown(target)
	switch {
	case blank(richText(label)):
		return r.said(shown)
	case shown != "" && shown != r.textOf(n):
		return append(label, r.said(" ("+shown+")")...)
	}
	return label
}

// unwrapped is a list, or its only element.
func unwrapped(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return slices.Clone(list)
}

// richText returns the visible text of a text, with the source of formulas.
func richText(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case richSpan:
		return richText(t.Text) + t.Expression
	case []any:
		var b bytes.Buffer
		for _, e := range t {
			b.WriteString(richText(e))
		}
		return b.String()
	default:
		return ""
	}
}
