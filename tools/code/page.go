package code

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// Limits of what one search reads again.
const (
	maxPages     = 64
	maxPageBytes = 8 << 20
	maxSnippet   = 200 // bytes
)

// pages reads files once in a search, as the conversation may.
type pages struct {
	view  *file.View
	read  map[string]*page
	bytes int
}

// page is a file; its content is empty if it cannot be read.
type page struct {
	content []byte
	stamp   file.Stamp
	lines   []int32 // where each line begins
}

// pageOf returns a file that is text; nil = it cannot be read, or must not be.
func (p *pages) pageOf(path string) *page {
	if got, ok := p.read[path]; ok {
		return got
	}
	if len(p.read) >= maxPages || p.bytes > maxPageBytes {
		clear(p.read)
		p.bytes = 0
	}
	content, stamp, err := p.view.Read(path, outline.MaxBytes+1)
	if err != nil || !utf8.Valid(content[:min(len(content), outline.MaxBytes)]) && bytes.IndexByte(content, 0) >= 0 {
		p.read[path] = nil
		return nil
	}
	got := newPage(content, stamp)
	p.read[path] = got
	p.bytes += len(content)
	return got
}

func newPage(content []byte, stamp file.Stamp) *page {
	p := &page{content: content, stamp: stamp, lines: make([]int32, 1, 1+bytes.Count(content, []byte("\n")))}
	for i, c := range content {
		if c == '\n' && i+1 < len(content) {
			p.lines = append(p.lines, line32(i+1))
		}
	}
	return p
}

// line returns a line, from 1; "" = there is none.
func (p *page) line(n int) string {
	if n < 1 || n > len(p.lines) {
		return ""
	}
	end := len(p.content)
	if n < len(p.lines) {
		end = int(p.lines[n])
	}
	return string(bytes.TrimRight(p.content[p.lines[n-1]:end], "\r\n"))
}

// text returns some lines.
func (p *page) text(start, end int) string {
	start, end = max(start, 1), min(end, len(p.lines))
	if start > end {
		return ""
	}
	to := len(p.content)
	if end < len(p.lines) {
		to = int(p.lines[end])
	}
	return string(p.content[p.lines[start-1]:to])
}

// snippetOf returns a line as it is shown.
func (p *page) snippetOf(n int) string { return oneLine(p.line(n)) }

// oneLine shortens a text to one line without invisible characters.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "�")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxSnippet {
		return s
	}
	cut := maxSnippet
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + " …"
}
