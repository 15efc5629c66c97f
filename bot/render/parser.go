package render

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// sharedParser is built once, like a compiled regular expression; goldmark's parser
// keeps its state in a context per call and is safe for concurrent use.
var sharedParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.TaskList, extension.Linkify),
		goldmark.WithParserOptions(
			parser.WithInlineParsers(
				util.Prioritized(mathInline{}, 150), // after code, before everything else
				util.Prioritized(emphasis{}, 490),   // before goldmark's own, which is never called
				util.Prioritized(doubleTilde{extension.NewStrikethroughParser()}, 500),
				util.Prioritized(spoilers{}, 500),
			),
			parser.WithBlockParsers(
				// before headings that are underlined
				util.Prioritized(ruleBelowTable{parser.NewThematicBreakParser()}, 90),
				util.Prioritized(mathBlock{}, 750), // after fences, before quotes
			),
		),
	).Parser()
})

// doubleTilde is strikethrough that requires two tildes. With one, which GitHub also accepts, ranges like "10~20 and
// 30~40" would be struck out.
type doubleTilde struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (p doubleTilde) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if line, _ := block.PeekLine(); len(line) < 2 || line[1] != '~' {
		return nil
	}
	return p.InlineParser.Parse(parent, block, pc)
}

// Sources beyond these limits are shown as text. No answer comes near them, and the parser takes time that is quadratic
// in the last two.
const (
	maxMarkdown = 256 << 10 // bytes
	maxBrackets = 4000      // "[" outside of code
	maxNesting  = 64        // quote and list markers at the beginning of one line
)

// build parses and renders src.
func build(src string, folding Folding) *document {
	src = normalize(src)
	w := &writer{gap: 2, bol: true, folding: folding}
	if len(src) > maxMarkdown || hostile(src) {
		w.append(clean(src), style{})
		return &w.document
	}
	w.src = []byte(src)
	w.root = sharedParser().Parse(text.NewReader(w.src))
	w.blocks(w.root)
	return &w.document
}

// hostile reports whether parsing src would take very long.
func hostile(src string) bool {
	var f fence
	brackets := 0
	for line := range strings.Lines(src) {
		f.next(line)
		if !f.open {
			brackets += strings.Count(line, "[")
		}
		if brackets > maxBrackets || markers(line) > maxNesting {
			return true
		}
	}
	return false
}

// markers counts the quote and bullet markers at the beginning of a line.
func markers(line string) int {
	n := 0
	for i := range len(line) {
		switch c := line[i]; c {
		case ' ', '\t':
		case '>':
			n++
		case '-', '+', '*':
			if i+1 < len(line) && line[i+1] == ' ' {
				n++
			}
		default:
			return n
		}
	}
	return n
}
