package render

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// maxMath is the longest formula within a line, in bytes.
	maxMath = 512
	// maxMathBlock is the longest formula over several lines, in bytes.
	maxMathBlock = 2 << 10
)

// mathInline keeps formulas within a line from being read as Markdown, in which they would lose letters: "$x_1*y_1$",
// "$$…$$", "\(…\)", "\[…\]". Telegram shows no formulas: simple ones become Unicode (readable), others stay as they are.
type mathInline struct{}

// Trigger implements parser.InlineParser.
func (mathInline) Trigger() []byte { return []byte{'$', '\\'} }

// Parse implements parser.InlineParser.
func (mathInline) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	opening, closing := mathMarks(line)
	if opening == "" || line[0] == '$' && isWord(block.PrecendingCharacter()) {
		return nil
	}
	size := mathSize(line, opening, closing)
	if size == 0 {
		return nil
	}
	block.Advance(size)
	return &formulaSpan{Segment: segment.WithStop(segment.Start + size)}
}

var kindOfFormulaSpan = ast.NewNodeKind("FormulaSpan")

// formulaSpan is a formula within a line. It is no raw text, with which the parser joins the text that follows.
type formulaSpan struct {
	ast.BaseInline
	Segment text.Segment // with the marks
}

// Kind implements ast.Node.
func (*formulaSpan) Kind() ast.NodeKind { return kindOfFormulaSpan }

// Dump implements ast.Node.
func (f *formulaSpan) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// mathMarks returns the marks of the formula that line may begin with.
func mathMarks(line []byte) (opening, closing string) {
	for _, m := range [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}} {
		if bytes.HasPrefix(line, []byte(m[0])) {
			return m[0], m[1]
		}
	}
	return "", ""
}

// mathSize returns the length of the formula at the start of line with its marks, or 0. Between single dollars only a
// formula counts: no space at its ends, no letter or digit after it ("$5 and $6"), no code and no bold text in it.
func mathSize(line []byte, opening, closing string) int {
	rest := line[len(opening):min(len(line), maxMath)]
	n := bytes.Index(rest, []byte(closing))
	if n <= 0 {
		return 0
	}
	end := len(opening) + n + len(closing)
	inner := rest[:n]
	switch opening {
	case `\[`: // also how brackets are escaped
		if !bytes.ContainsAny(inner, `\_^={}+<>`) {
			return 0
		}
		return end
	case "$$", `\(`:
		return end
	}
	if bytes.ContainsAny(inner[:1], " \t") || bytes.ContainsAny(inner[n-1:], " \t") || bytes.ContainsRune(inner, '`') ||
		bytes.Contains(inner, []byte("**")) {
		return 0
	}
	if end < len(line) && nameByte(line[end]) {
		return 0
	}
	return end
}

// readableFormulas returns a formula as people read it, if it is simple and raw is a formula for sure; else raw.
func readableFormulas(raw string) string {
	opening, closing := mathMarks([]byte(raw))
	inner, ok := strings.CutSuffix(strings.TrimPrefix(raw, opening), closing)
	if opening == "" || !ok || opening == "$" && !looksLikeFormula(inner) {
		return raw
	}
	if text, simple := readableFormula(inner); simple {
		return text
	}
	return raw
}

// readableLines is readable for a formula over several lines: each is one of its own.
func readableLines(raw string) string {
	raw = strings.TrimSpace(raw)
	opening, closing := mathMarks([]byte(raw))
	inner, ok := strings.CutSuffix(strings.TrimPrefix(raw, opening), closing)
	if opening == "" || !ok {
		return raw
	}
	var list []string
	for line := range strings.SplitSeq(strings.TrimSpace(inner), "\n") {
		text, simple := readableFormula(strings.TrimSuffix(strings.TrimSpace(line), `\\`))
		if !simple {
			return raw
		}
		list = append(list, text)
	}
	return strings.Join(list, "\n")
}

// formulaAt returns the length of the formula within a line that begins at i, or 0.
func formulaAt(block string, i int) int {
	if block[i] != '$' && block[i] != '\\' {
		return 0
	}
	line, _, _ := strings.Cut(block[i:], "\n")
	opening, closing := mathMarks([]byte(line))
	before, _ := utf8.DecodeLastRuneInString(block[:i])
	if opening == "" || line[0] == '$' && isWord(before) {
		return 0
	}
	return mathSize([]byte(line), opening, closing)
}

// mathBlock keeps formulas over several lines, in which a line that begins with "+" or "#" would be a list or a
// heading. It begins with a line that begins with "$$" or "\[" and ends with the first line that ends with its
// counterpart. If a blank line comes before that, it is no formula.
type mathBlock struct{}

// Trigger implements parser.BlockParser.
func (mathBlock) Trigger() []byte { return []byte{'$', '\\'} }

// Open implements parser.BlockParser.
func (mathBlock) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	opening, closing := mathMarks(bytes.TrimLeft(line, " \t"))
	if opening != "$$" && opening != `\[` {
		return nil, parser.NoChildren
	}
	body := bytes.TrimLeft(line, " \t")[len(opening):]
	if bytes.Contains(body, []byte(closing)) || !mathEnds(reader.Source()[segment.Stop:], closing) {
		return nil, parser.NoChildren
	}
	node := &formula{closing: closing}
	node.Lines().Append(segment)
	reader.AdvanceToEOL()
	return node, parser.NoChildren
}

// mathEnds reports whether a line of rest ends with closing before a blank one.
func mathEnds(rest []byte, closing string) bool {
	for line := range bytes.Lines(rest[:min(len(rest), maxMathBlock)]) {
		line = bytes.Trim(line, " \t>\n")
		if len(line) == 0 {
			return false
		}
		if bytes.HasSuffix(line, []byte(closing)) {
			return true
		}
	}
	return false
}

// Continue implements parser.BlockParser.
func (mathBlock) Continue(node ast.Node, reader text.Reader, _ parser.Context) parser.State {
	line, segment := reader.PeekLine()
	node.Lines().Append(segment)
	reader.AdvanceToEOL()
	if f, ok := node.(*formula); ok && bytes.HasSuffix(bytes.TrimRight(line, " \t\n"), []byte(f.closing)) {
		return parser.Close
	}
	return parser.Continue | parser.NoChildren
}

// Close implements parser.BlockParser.
func (mathBlock) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph implements parser.BlockParser.
func (mathBlock) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements parser.BlockParser.
func (mathBlock) CanAcceptIndentedLine() bool { return false }

var kindOfFormula = ast.NewNodeKind("Formula")

// formula is a formula over several lines.
type formula struct {
	ast.BaseBlock
	closing string
}

// Kind implements ast.Node.
func (*formula) Kind() ast.NodeKind { return kindOfFormula }

// IsRaw implements ast.Node: nothing in it is parsed.
func (*formula) IsRaw() bool { return true }

// Dump implements ast.Node.
func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }
