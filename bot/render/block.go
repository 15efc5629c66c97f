package render

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

const (
	// indent precedes nested and continued lines of a list item.
	indent = "   "
	// maxPrefix limits the indentation in bytes: a phone shows no more levels, and hostile nesting must not make the
	// output quadratic.
	maxPrefix = 8 * len(indent)

	rule = "———"
)

// writer renders the syntax tree into a document.
type writer struct {
	document
	folding Folding
	src     []byte
	root    ast.Node        // of the whole document
	used    map[string]bool // labels of link definitions that are used by links; nil until needed

	style   style
	prefix  string // of every line of text in the current block
	bol     bool   // at the beginning of a line, with the prefix not written yet
	pending int    // newlines to write before the next text
	gap     int    // newlines between the blocks of the current container
	glue    bool   // a list marker was written: text continues on its line
	quoted  int    // depth of block quotes

	cell  bool         // in a table: no entities, links are collected
	links []linkedText // links of the table
}

// linkedText is a link that could not be written at its place.
type linkedText struct{ label, url string }

// separate starts a new block. Text may follow a list marker directly, other blocks
// begin on their own line.
func (w *writer) separate(isText bool) {
	gap := w.gap
	if w.glue {
		gap = 1
		if isText {
			gap = 0
		}
	}
	w.glue = false
	w.pending = max(w.pending, gap)
}

// flush writes the pending newlines.
func (w *writer) flush() {
	if w.pending > 0 && w.text != "" {
		w.append(strings.Repeat("\n", w.pending), style{kindQuote: w.style[kindQuote]})
		w.bol = true
	}
	w.pending = 0
}

// write adds text in the current style, with the prefix before each line.
func (w *writer) write(s string) {
	if s == "" {
		return
	}
	w.flush()
	for line := range strings.Lines(clean(s)) {
		if w.bol && line != "\n" {
			w.append(w.prefix, style{kindQuote: w.style[kindQuote]})
		}
		w.append(line, w.style)
		w.bol = strings.HasSuffix(line, "\n")
	}
}

// within runs body with an attribute of kind k, unless one applies already: entities of the same kind cannot be nested.
func (w *writer) within(k kind, e Entity, body func()) {
	if w.style[k] != 0 || w.cell {
		body()
		return
	}
	w.style[k] = w.attr(e)
	body()
	w.style[k] = 0
}

func (w *writer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.block(n)
	}
}

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.separate(true)
		w.within(kindBold, Entity{Type: "bold"}, func() { w.inlines(n) })
	case *ast.Paragraph, *ast.TextBlock:
		w.separate(true)
		w.inlines(n)
	case *ast.List:
		w.list(n)
	case *ast.Blockquote:
		w.quote(n)
	case *ast.FencedCodeBlock:
		w.code(w.lines(n), language(n.Language(w.src)))
	case *ast.CodeBlock:
		w.code(w.lines(n), "")
	case *ast.HTMLBlock:
		w.html(n)
	case *formula:
		w.separate(true)
		w.write(readableLines(strings.TrimRight(w.lines(n), "\n")))
	case *ast.ThematicBreak:
		w.separate(true)
		w.write(rule)
	case *extast.Table:
		w.table(n)
	case *ast.LinkReferenceDefinition:
		w.definition(n)
	default:
		w.blocks(n)
	}
}

// lines returns the raw text of a block.
func (w *writer) lines(n ast.Node) string {
	return string(n.Lines().Value(w.src))
}

// code writes a block of code.
func (w *writer) code(s, lang string) {
	s = strings.TrimRight(clean(s), "\n ")
	if blank(s) {
		return
	}
	w.separate(false)
	w.flush()
	st := w.style
	if w.folds(s, lang) {
		st[kindQuote] = w.attr(Entity{Type: "expandable_blockquote"})
	}
	st[kindPre] = w.attr(Entity{Type: "pre", Language: lang})
	w.append(s, st)
	w.bol = false
}

// maxLanguage is longer than the name of any language.
const maxLanguage = 32

// language returns the name for syntax highlighting, or "" if the info string is something else.
func language(info []byte) string {
	if len(info) > maxLanguage {
		return ""
	}
	for _, c := range info {
		if !util.IsAlphaNumeric(c) && !strings.ContainsRune("+-#._", rune(c)) {
			return ""
		}
	}
	return string(info)
}

// html shows markup as text.
func (w *writer) html(n *ast.HTMLBlock) {
	s := w.lines(n)
	if n.HasClosure() {
		s += string(n.ClosureLine.Value(w.src))
	}
	w.separate(true)
	w.write(strings.TrimRight(s, "\n"))
}

// quote writes a block quote. Telegram supports one level; deeper ones get "> ".
func (w *writer) quote(n ast.Node) {
	w.separate(false)
	prefix, gap := w.prefix, w.gap
	w.gap = 2
	w.quoted++
	if w.quoted == 1 {
		w.prefix = ""
		start := len(w.text)
		id := w.attr(Entity{Type: "blockquote"})
		w.style[kindQuote] = id
		w.blocks(n)
		w.style[kindQuote] = 0
		if s := strings.TrimSpace(w.text[start:]); long(s, w.folding.Quotes) {
			w.attrs[id-1].Type = "expandable_blockquote"
		}
	} else {
		w.deepen("> ")
		w.blocks(n)
	}
	w.quoted--
	w.prefix, w.gap = prefix, gap
}

func (w *writer) deepen(by string) {
	if len(w.prefix)+len(by) <= maxPrefix {
		w.prefix += by
	}
}

// list writes the items of a list, nested ones indented.
func (w *writer) list(n *ast.List) {
	w.separate(false)
	prefix, gap := w.prefix, w.gap
	w.gap = 2
	if n.IsTight {
		w.gap = 1
	}
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item != n.FirstChild() {
			w.separate(false)
		}
		w.write(marker(n, item, number))
		number++
		w.deepen(indent)
		w.glue = true
		w.blocks(item)
		w.glue = false
		w.prefix = prefix
	}
	w.gap = gap
}

// marker returns what precedes an item; a box replaces the bullet of a task.
func marker(list *ast.List, item ast.Node, number int) string {
	box := ""
	if first := item.FirstChild(); first != nil {
		if task, ok := first.FirstChild().(*extast.TaskCheckBox); ok {
			box = "☐ "
			if task.IsChecked {
				box = "☑ "
			}
		}
	}
	switch {
	case list.IsOrdered():
		return strconv.Itoa(number) + string(list.Marker) + " " + box
	case box != "":
		return box
	}
	return "• "
}

// definition shows a link definition that no link uses: a model that ends its answer with "[1]: https://…" intends it
// to be read.
func (w *writer) definition(n *ast.LinkReferenceDefinition) {
	if w.referenced(util.ToLinkReference(n.Label)) {
		return
	}
	w.separate(true)
	w.write("[" + string(n.Label) + "]: ")
	w.target(unescape(string(n.Destination)))
	if title := unescape(string(n.Title)); title != "" {
		w.write(" (" + title + ")")
	}
}

// referenced reports whether a link uses the definition.
func (w *writer) referenced(label string) bool {
	if w.used != nil {
		return w.used[label]
	}
	w.used = map[string]bool{}
	// The callback never fails, so neither does the walk.
	_ = ast.Walk(w.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		var ref *ast.ReferenceLink
		switch n := n.(type) {
		case *ast.Link:
			ref = n.Reference
		case *ast.Image:
			ref = n.Reference
		}
		if entering && ref != nil {
			w.used[util.ToLinkReference(bytes.TrimSpace(ref.Value))] = true
		}
		return ast.WalkContinue, nil
	})
	return w.used[label]
}
