package outline

import "strings"

// lines reads a source line by line.
type lines struct {
	src  string
	at   int
	line int // of the newest line
}

// next returns the next line without its end; false = there is none.
func (l *lines) next() (string, bool) {
	if l.at >= len(l.src) {
		return "", false
	}
	l.line++
	rest := l.src[l.at:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		l.at += i + 1
		return strings.TrimSuffix(rest[:i], "\r"), true
	}
	l.at = len(l.src)
	return rest, true
}

// indentOf returns the width of the white space before a text; a tab counts to the next multiple of 8.
func indentOf(s string) (width int, rest string) {
	for i := range len(s) {
		switch s[i] {
		case ' ':
			width++
		case '\t':
			width += 8 - width%8
		default:
			return width, s[i:]
		}
	}
	return width, ""
}

// block is a declaration that ends with its indentation.
type block struct {
	indent int
	symbol int
	name   string
	kind   Kind
}

// blocks are the open declarations of a language with indentation.
type blocks struct {
	out  *builder
	open []block
	seen int // the last line with text
}

// leave closes what does not contain a line with this indentation.
func (b *blocks) leave(indent int) {
	for n := len(b.open); n > 0 && b.open[n-1].indent >= indent; n-- {
		b.out.end(b.open[n-1].symbol, b.seen)
		b.open = b.open[:n-1]
	}
}

// inside returns the innermost open declaration; the zero value is the file.
func (b *blocks) inside() block {
	if len(b.open) == 0 {
		return block{indent: -1}
	}
	return b.open[len(b.open)-1]
}

// enter adds a symbol that contains what is indented below it.
func (b *blocks) enter(s Symbol, indent int) {
	if len(b.open) >= maxScopes {
		b.out.Truncated = true
		return
	}
	b.open = append(b.open, block{indent: indent, symbol: b.out.add(s), name: s.Name, kind: s.Kind})
}

// leadingWord splits a text into its first word and the rest.
func leadingWord(s string) (word, rest string) {
	n := 0
	for n < len(s) && (isWord(s[n]) || isDigit(s[n])) {
		n++
	}
	return s[:n], strings.TrimLeft(s[n:], " \t")
}

// hashNote collects comments that begin with # for the declaration below them.
type hashNote struct {
	text string
	end  int
}

// add remembers a comment of one line.
func (n *hashNote) add(text string, line int) {
	if line == 1 && strings.HasPrefix(text, "#!") {
		return
	}
	text = strings.TrimLeft(text, "#! ")
	if n.end != line-1 {
		n.text = ""
	}
	n.end = line
	if len(n.text) < MaxDoc {
		n.text = strings.TrimSpace(n.text + " " + text)
	}
}

// above returns the comment that ends right above a line.
func (n *hashNote) above(line int) string {
	if n.end == line-1 {
		return n.text
	}
	return ""
}
