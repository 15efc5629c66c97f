package command

import "strings"

// isLiteral reports whether c is an ASCII character that represents itself, or a pattern, in a word outside quotes.
func isLiteral(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '*' && c <= ':' || strings.IndexByte("_=@%^?[]~#!", c) >= 0
}

// isSpecial reports whether c names a special parameter such as $?.
func isSpecial(c byte) bool { return c != 0 && strings.IndexByte("?$!#@*-", c) >= 0 }

// endsWord reports whether c cannot be part of a word and therefore ends it.
func endsWord(c byte) bool {
	switch c {
	case 0, ' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>', '`':
		return true
	}
	return false
}

// piece is a word of the plain grammar.
type piece struct {
	from, to int
	brace    bool // it has a brace outside quotes
	plain    bool // nothing in it is quoted or expanded
}

// readWord reads one word; there must be one.
func (r *plainReader) readWord() (piece, bool) {
	p := piece{from: r.pos, plain: true}
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		if isLiteral(c) {
			r.pos++
			continue
		}
		if endsWord(c) && (c != '`' || r.back) {
			break
		}
		if c == '{' || c == '}' {
			p.brace = true
		} else {
			p.plain = false
		}
		if !r.readPart(c) {
			return p, false
		}
	}
	p.to = r.pos
	switch {
	case p.to == p.from:
		return p, r.failReading("an operator that bash does not expect")
	case r.peekByte(0) == '(':
		return p, r.failReading("a bracket behind a word (a pattern, an array or a function)")
	case p.brace && (r.peekByte(0) == '<' || r.peekByte(0) == '>'):
		return p, r.failDoubt("a redirection that names a variable")
	}
	return p, true
}

// readPart reads what begins with c, which is not a literal.
func (r *plainReader) readPart(c byte) bool {
	switch {
	case r.back && c != '$':
		return r.failDoubt("quotes or escapes inside back quotes")
	case c == '\\':
		if next := r.peekByte(1); next < ' ' || next >= 0x7f {
			return r.failDoubt("a backslash before a newline inside a word")
		}
		r.pos += 2
		return true
	case c == '\'':
		return r.singleQuoted()
	case c == '"':
		return r.doubleQuoted()
	case c == '$':
		return r.readDollar(false)
	case c == '`':
		return r.backQuoted()
	case c == '{':
		return r.readBrace()
	case c >= 0x80:
		return r.readVisible()
	}
	return r.failReading("a brace that nothing opens")
}

// singleQuoted reads '…'.
func (r *plainReader) singleQuoted() bool {
	end := strings.IndexByte(r.src[r.pos+1:], '\'')
	if end < 0 {
		return r.failDoubt("a quote that does not end")
	}
	text := r.src[r.pos+1 : r.pos+1+end]
	if r.pending && strings.IndexByte(text, '\n') >= 0 {
		return r.failDoubt("a here-document that begins in the middle of a word")
	}
	r.pos += end + 2
	return true
}

// doubleQuoted reads "…".
func (r *plainReader) doubleQuoted() bool {
	r.pos++
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; c {
		case '"':
			r.pos++
			return true
		case '\\':
			if r.peekByte(1) == '\n' {
				return r.failReading("a backslash before a newline inside quotes")
			}
			r.pos += 2
		case '$':
			if !r.readDollar(true) {
				return false
			}
		case '`':
			return r.failDoubt("back quotes inside double quotes")
		case '\n':
			if r.pending {
				return r.failDoubt("a here-document that begins in the middle of a word")
			}
			r.pos++
		default:
			r.pos++
		}
	}
	return r.failDoubt("a quote that does not end")
}

// backQuoted reads `…` with a command that contains neither quotes nor escapes.
func (r *plainReader) backQuoted() bool {
	from := r.pos
	r.pos++
	r.back = true
	ok := r.readInside('`')
	r.back = false
	if ok {
		r.noteToken(tokenSubst, from, r.pos)
	}
	return ok
}

// readInside reads the list of a command substitution up to its end.
func (r *plainReader) readInside(end byte) bool {
	if r.pending {
		return r.failDoubt("a here-document that begins in the middle of a word")
	}
	r.inner++
	r.readList(end)
	r.inner--
	if r.reason != "" {
		return false
	}
	if r.peekByte(0) != end || r.pending {
		return r.failDoubt("a command substitution that does not end")
	}
	r.pos++
	return true
}

// readDollar reads what begins with $.
func (r *plainReader) readDollar(quoted bool) bool {
	r.pos++
	c := r.peekByte(0)
	switch {
	case c == '{':
		return !r.back && r.readParameter(quoted) || r.failDoubt("an expansion with more than a plain word in it")
	case c == '(' && r.peekByte(1) == '(':
		return r.readNumber()
	case c == '(':
		return r.readSubstitution()
	case c >= '0' && c <= '9':
		r.pos++
		return r.peekByte(0) < '0' || r.peekByte(0) > '9' ||
			r.failReading("an expansion with more than a plain word in it")
	case isSpecial(c):
		r.pos++
		return true
	case r.skipName():
		return r.peekByte(0) < 0x80 || r.failReading("an expansion with more than a plain word in it")
	}
	return r.acceptLone(c, quoted)
}

// readSubstitution reads $(…).
func (r *plainReader) readSubstitution() bool {
	from := r.pos - 1
	r.pos++
	if r.back || !r.readInside(')') {
		return r.failDoubt("a command inside back quotes")
	}
	r.noteToken(tokenSubst, from, r.pos)
	return true
}

// acceptLone accepts a $ that represents itself.
func (r *plainReader) acceptLone(c byte, quoted bool) bool {
	if c == '\'' || c == '"' && !quoted {
		return r.failReading("$ before a quote")
	}
	if c == 0 || strings.IndexByte(" \t\n", c) >= 0 || quoted && strings.IndexByte("\"|)/.,:;%]&=+", c) >= 0 {
		return true
	}
	return r.failDoubt("a dollar sign that shells read differently")
}

// readNumber reads $((…)) with only decimal numbers in it, which are not also octal.
func (r *plainReader) readNumber() bool {
	r.pos += 2
	from := r.pos
	for more := true; more; more = r.readIndex() {
		r.pos = len(r.src) - len(strings.TrimLeft(r.src[r.pos:], " +-*/%<>=!&|^~?:,"))
	}
	if r.pos == from || !r.hasText("))") {
		return r.failReading(reasonArithmetic)
	}
	r.pos += 2
	return true
}

// operators can follow a name in ${…}, longer ones first.
var operators = [...]string{
	":-", ":=", ":+", ":?", "-", "=", "+", "?", "%%", "%", "##", "#", "//", "/#", "/%", "/",
	"^^", "^", ",,", ",",
}

// readParameter reads ${…}.
func (r *plainReader) readParameter(quoted bool) bool {
	r.pos++
	if r.peekByte(0) == '#' && r.peekByte(1) != '}' {
		r.pos++
		return r.parameterName() && r.readClose()
	}
	if !r.parameterName() {
		return false
	}
	for _, operator := range operators {
		if r.hasText(operator) {
			r.pos += len(operator)
			return r.readOperand(quoted) && r.readClose()
		}
	}
	if r.peekByte(0) == ':' {
		r.pos++
		if !r.readIndex() || r.peekByte(0) == ':' && !r.readSecond() {
			return false
		}
	}
	return r.readClose()
}

// readSecond reads the length of a slice.
func (r *plainReader) readSecond() bool {
	r.pos++
	return r.readIndex()
}

// readIndex reads a number that is not also octal.
func (r *plainReader) readIndex() bool {
	octal := r.peekByte(0) == '0' && r.peekByte(1) >= '0' && r.peekByte(1) <= '9'
	return !octal && r.skipDigits()
}

// parameterName reads the name in ${…}, with a literal subscript.
func (r *plainReader) parameterName() bool {
	c := r.peekByte(0)
	switch {
	case isSpecial(c):
		r.pos++
		return c != '!' && c != '#' || r.peekByte(0) == '}'
	case r.skipDigits():
		return true
	case !r.skipName():
		return false
	case r.peekByte(0) != '[':
		return true
	}
	r.pos++
	if r.peekByte(0) == '@' || r.peekByte(0) == '*' {
		r.pos++
	} else if !r.readIndex() {
		return false
	}
	if r.peekByte(0) != ']' {
		return false
	}
	r.pos++
	return true
}

// readOperand reads the word after an operator of ${…}: literals and $name.
func (r *plainReader) readOperand(quoted bool) bool {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == '}':
			return true
		case c == '$':
			r.pos++
			if !r.skipName() {
				return false
			}
		case isLiteral(c) && strings.IndexByte("~!#[]^", c) < 0, c == ' ' && quoted:
			r.pos++
		default:
			return false
		}
	}
	return false
}

// readClose reads the } that ends ${…}.
func (r *plainReader) readClose() bool {
	if r.peekByte(0) != '}' {
		return false
	}
	r.pos++
	return true
}

// readBrace reads a brace outside quotes: {a,b}, {1..9}, or a literal one such as {} and @{1}.
func (r *plainReader) readBrace() bool {
	end := strings.IndexByte(r.src[r.pos:], '}')
	if end < 0 {
		return r.failReading("a brace that does not end")
	}
	for _, c := range []byte(r.src[r.pos+1 : r.pos+end]) {
		if !isLiteral(c) || strings.IndexByte("~!#[]*?^", c) >= 0 {
			return r.failReading("a brace expansion with more than plain words in it")
		}
	}
	r.pos += end + 1
	return true
}
