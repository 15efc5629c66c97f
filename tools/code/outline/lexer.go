package outline

import (
	"strings"
	"unicode/utf8"
)

// kind of a token. A single punctuation character is its own kind.
type tokenKind byte

const (
	tokEnd    tokenKind = 0
	tokWord   tokenKind = 'a'
	tokNumber tokenKind = '1'
	tokString tokenKind = '"'
	tokArrow  tokenKind = '>' + 128 // => or ->
	tokSame   tokenKind = '=' + 128 // ==, !=, <=, >=, and the like
	tokColons tokenKind = ':' + 128 // ::
	tokBlock  tokenKind = '}' + 128 // braces that were an expression
)

// lexeme is a part of the source. depth is the number of round and square brackets around it, within its statement.
type lexeme struct {
	kind  tokenKind
	text  string
	line  int
	depth int
}

// comment is the newest comment, for the declaration that follows it.
type comment struct {
	text       string
	start, end int // lines
	wholeLine  bool
}

// lexer splits the source of a language with braces into tokens.
type lexer struct {
	lang Language
	src  string
	at   int
	line int
	last tokenKind // the token before, to tell a division from a regular expression
	word string    // its text if it was a word
	note comment
	out  *builder // for macros of C
	bol  bool     // nothing but space came in this line
}

// next returns the next token. A line end is a token of kind '\n'.
func (l *lexer) next() lexeme {
	for l.at < len(l.src) {
		c := l.src[l.at]
		switch {
		case c == '\n':
			t := lexeme{kind: '\n', text: "\n", line: l.line}
			l.at++
			l.line++
			l.bol = true
			return t
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.at++
		case c == '/' && l.comment():
		case c == '#' && l.bol && (l.lang == C || l.lang == CPP):
			l.directive()
		case c == '#' && l.at == 0 && strings.HasPrefix(l.src, "#!") && l.lang != Rust:
			l.skipLine()
		default:
			t := l.token(c)
			l.bol = false
			if t.kind != tokEnd {
				l.last, l.word = t.kind, t.text
				return t
			}
		}
	}
	return lexeme{line: l.line}
}

// token reads a token that begins with c. Kind tokEnd means that nothing is to be reported.
func (l *lexer) token(c byte) lexeme {
	start, line := l.at, l.line
	switch {
	case isWord(c):
		if l.rawString() {
			return lexeme{kind: tokString, text: `""`, line: line}
		}
		for l.at < len(l.src) && (isWord(l.src[l.at]) || isDigit(l.src[l.at])) {
			l.at++
		}
		return lexeme{kind: tokWord, text: l.src[start:l.at], line: line}
	case isDigit(c):
		l.number()
		return lexeme{kind: tokNumber, text: "0", line: line}
	case c == '"' || c == '\'' || c == '`':
		return l.quoted(c)
	case c == '/' && (l.lang == JavaScript || l.lang == TypeScript) && l.expression():
		l.regular()
		return lexeme{kind: tokString, text: `""`, line: line}
	}
	l.at++
	return l.punctuation(c, line)
}

func (l *lexer) punctuation(c byte, line int) lexeme {
	next := byte(0)
	if l.at < len(l.src) {
		next = l.src[l.at]
	}
	two := tokEnd
	switch {
	case next == '>' && (c == '=' || c == '-'):
		two = tokArrow
	case c == ':' && next == ':':
		two = tokColons
	case next == '=' && strings.IndexByte("=!<>+-*/%&|^:", c) >= 0:
		two = tokSame
	}
	if two == tokEnd {
		return lexeme{kind: tokenKind(c), text: l.src[l.at-1 : l.at], line: line}
	}
	l.at++
	return lexeme{kind: two, text: l.src[l.at-2 : l.at], line: line}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || (c|0x20 >= 'a' && c|0x20 <= 'z') || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number skips a number. In C++, an apostrophe may separate digits.
func (l *lexer) number() {
	for l.at < len(l.src) {
		c := l.src[l.at]
		apart := c == '\'' && l.lang == CPP && l.at+1 < len(l.src) && (isDigit(l.src[l.at+1]) || isWord(l.src[l.at+1]))
		point := c == '.' && l.at+1 < len(l.src) && isDigit(l.src[l.at+1])
		if !isWord(c) && !isDigit(c) && !apart && !point {
			return
		}
		l.at++
	}
}

// skipLine skips to the end of the line, which remains.
func (l *lexer) skipLine() {
	if i := strings.IndexByte(l.src[l.at:], '\n'); i >= 0 {
		l.at += i
		return
	}
	l.at = len(l.src)
}

// skipTo skips to the end of the next occurrence of mark, and counts lines. Without one, it skips everything.
func (l *lexer) skipTo(mark string) {
	end := len(l.src)
	if i := strings.Index(l.src[l.at:], mark); i >= 0 {
		end = l.at + i + len(mark)
	}
	l.line += strings.Count(l.src[l.at:end], "\n")
	l.at = end
}

// comment skips a comment and remembers it.
func (l *lexer) comment() bool {
	rest := l.src[l.at:]
	start, line := l.at, l.line
	switch {
	case strings.HasPrefix(rest, "//"):
		l.skipLine()
		text := strings.TrimLeft(l.src[start:l.at], "/! ")
		if n := &l.note; n.wholeLine && n.end == line-1 && l.bol {
			n.end = line
			if len(n.text) < MaxDoc {
				n.text += " " + strings.TrimSpace(text)
			}
			return true
		}
		l.note = comment{text: strings.TrimSpace(text), start: line, end: line, wholeLine: l.bol}
	case strings.HasPrefix(rest, "/*"):
		l.at += 2
		if l.lang == Rust {
			l.nested()
		} else {
			l.skipTo("*/")
		}
		l.note = comment{text: plainComment(l.src[start:l.at]), start: line, end: l.line}
	default:
		return false
	}
	return true
}

// nested skips the rest of a comment that may contain others.
func (l *lexer) nested() {
	for depth := 1; depth > 0 && l.at < len(l.src); l.at++ {
		switch {
		case l.src[l.at] == '\n':
			l.line++
		case strings.HasPrefix(l.src[l.at:], "/*"):
			depth++
			l.at++
		case strings.HasPrefix(l.src[l.at:], "*/"):
			depth--
			l.at++
		}
	}
	l.at = min(l.at, len(l.src))
}

// plainComment removes the signs of a block comment.
func plainComment(s string) string {
	s = s[:min(len(s), 2*MaxDoc)]
	s = strings.TrimSuffix(strings.TrimLeft(s, "/*!"), "*/")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '*'
	}), " ")
}

// doc returns the comment that belongs to what begins in a line.
func (l *lexer) doc(line int) string {
	if l.note.text != "" && l.note.end >= line-1 && l.note.start <= line &&
		(l.note.wholeLine || l.note.end < line || l.note.start < line) {
		return l.note.text
	}
	return ""
}
