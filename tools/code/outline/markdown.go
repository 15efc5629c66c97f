package outline

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdownBlocks returns a parser of what is not inside of quotes and lists. Those take quadratic time if they are
// nested, and headings in them are none of the document.
func markdownBlocks() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewHTMLBlockParser(), 900),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	))
}

// noHeading matches the first line of what a line of dashes below it does not make a heading: a quote
// or a list.
var noHeading = regexp.MustCompile(`^ *([-*+]|\d+[.)])\s|^ *>`)

// markdown lists headings. A heading contains what follows it up to the next one of its level.
func markdown(src []byte, out *builder) {
	var open []block // indent is the level
	leave := func(level, last int) {
		for n := len(open); n > 0 && open[n-1].indent >= level; n-- {
			out.end(open[n-1].symbol, last)
			open = open[:n-1]
		}
	}
	line, at := 1, 0
	lineOf := func(offset int) int {
		line += bytes.Count(src[at:offset], []byte("\n"))
		at = offset
		return line
	}
	for node := markdownBlocks().Parse(text.NewReader(src)).FirstChild(); node != nil; node = node.NextSibling() {
		heading, ok := node.(*ast.Heading)
		if !ok || heading.Lines().Len() == 0 {
			continue
		}
		first := heading.Lines().At(0)
		lineStart := bytes.LastIndexByte(src[:first.Start], '\n') + 1
		frontMatter := lineStart <= len("---\r\n") && bytes.HasPrefix(src, []byte("---"))
		if frontMatter || noHeading.Match(src[lineStart:first.Stop]) {
			continue
		}
		name := strings.ReplaceAll(string(heading.Lines().Value(src)), "`", "")
		name = cutText(strings.Trim(strings.ReplaceAll(name, "\n", " "), "# *"), MaxName)
		s := Symbol{Name: name, Kind: Section, Start: lineOf(first.Start)}
		leave(heading.Level, s.Start-1)
		if n := len(open); n > 0 {
			s.Container = open[n-1].name
		}
		s.Doc = firstText(heading, src)
		open = append(open, block{indent: heading.Level, symbol: out.add(s), name: name})
	}
	leave(0, lineOf(len(bytes.TrimSuffix(src, []byte("\n")))))
}

// firstText returns the first line of text below a heading.
func firstText(heading ast.Node, src []byte) string {
	for node := heading.NextSibling(); node != nil; node = node.NextSibling() {
		switch node.(type) {
		case *ast.Heading:
			return ""
		case *ast.Paragraph, *ast.HTMLBlock:
			if lines := node.Lines(); lines.Len() > 0 {
				first := lines.At(0)
				return string(first.Value(src))
			}
		}
	}
	return ""
}
