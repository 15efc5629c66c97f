package command

import "strings"

// isLiteral reports whether c is an ASCII character that represents itself, or a pattern, in a word outside quotes.
func isLiteral(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '*' && c <= ':' || strings.IndexByte("_=@%^?[]~#!", c) >= 0
}

// isSpecial reports whether c names a special parameter such as $?.
func isSpecial(c byte) bool { return c != 0 && strings.IndexByte("?$!#@*-", c) >= 0 }

// ends reports whether c cannot be part of a word and therefore ends it.
func ends(c byte) bool {
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

// word reads one word; there must be one.
func (r *plainReader) word() (piece, bool) {
	p := piece{from: r.pos, plain: true}
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		if isLiteral(c) {
			r.pos++
			continue
		}
		if ends(c) && (c != '`' || r.back) {
			break
		}
		if c == '{' || c == '}' {
			p.brace = true
		} else {
			p.plain = false
		}
		if !r.part(c) {
			return p, false
		}
	}
	p.to = r.pos
	switch {
	case p.to == p.from:
		return p, r.fail("an operator that bash does not expect")
	case r.peek(0) == '(':
		return p, r.fail("a bracket behind a word (a pattern, an array or a function)")
	case p.brace && (r.peek(0) == '<' || r.peek(0) == '>'):
		return p, r.failDoubt("a redirection that names a variable")
	}
	return p, true
}

// part reads what begins with c, which is not a literal.
func (r *plainReader) part(c byte) bool {
	switch {
	case r.back && c != '$':
		return r.failDoubt("quotes or escapes inside back quotes")
	case c == '\\':
		if next := r.peek(1); next < ' ' || next >= 0x7f {
			return r.failDoubt("a backslash before a newline inside a word")
		}
		r.pos += 2
		return true
	case c == '\'':
		return r.singleQuoted()
	case c == '"':
		return r.doubleQuoted()
	case c == '$':
		return r.dollar(false)
	case c == '`':
		return r.backQuoted()
	case c == '{':
		return r.brace()
	case c >= 0x80:
		return r.visible()
	}
	return r.fail("a brace that nothing opens")
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
			if r.peek(1) == '\n' {
				return r.fail("a backslash before a newline inside quotes")
			}
			r.pos += 2
		case '$':
			if !r.dollar(true) {
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
	ok := r.inside('`')
	r.back = false
	if ok {
		r.note(tokenSubst, from, r.pos)
	}
	return ok
}

// inside reads the list of a command substitution up to its end.
func (r *plainReader) inside(end byte) bool {
	if r.pending {
		return r.failDoubt("a here-document that begins in the middle of a word")
	}
	r.inner++
	r.list(end)
	r.inner--
	if r.reason != "" {
		return false
	}
	if r.peek(0) != end || r.pending {
		return r.failDoubt("a command substitution that does not end")
	}
	r.pos++
	return true
}

// dollar reads what begins with $.
func (r *plainReader) dollar(quoted bool) bool {
	r.pos++
	c := r.peek(0)
	switch {
	case c == '{':
		return !r.back && r.parameter(quoted) || r.failDoubt("an expansion with more than a plain word in it")
	case c == '(' && r.peek(1) == '(':
		return r.number()
	case c == '(':
		return r.substitution()
	case c >= '0' && c <= '9':
		r.pos++
		return r.peek(0) < '0' || r.peek(0) > '9' || r.fail("an expansion with more than a plain word in it")
	case isSpecial(c):
		r.pos++
		return true
	case r.name():
		return r.peek(0) < 0x80 || r.fail("an expansion with more than a plain word in it")
	}
	return r.lone(c, quoted)
}

// substitution reads $(…).
func (r *plainReader) substitution() bool {
	from := r.pos - 1
	r.pos++
	if r.back || !r.inside(')') {
		return r.failDoubt("a command inside back quotes")
	}
	r.note(tokenSubst, from, r.pos)
	return true
}

// lone accepts a $ that represents itself.
func (r *plainReader) lone(c byte, quoted bool) bool {
	if c == '\'' || c == '"' && !quoted {
		return r.fail("$ before a quote")
	}
	if c == 0 || strings.IndexByte(" \t\n", c) >= 0 || quoted && strings.IndexByte("\"|)/.,:;%]&=+", c) >= 0 {
		return true
	}
	return r.failDoubt("a dollar sign that shells read differently")
}

// number reads $((…)) with only decimal numbers in it, which are not also octal.
func (r *plainReader) number() bool {
	r.pos += 2
	from := r.pos
	for more := true; more; more = r.index() {
		r.pos = len(r.src) - len(strings.TrimLeft(r.src[r.pos:], " +-*/%<>=!&|^~?:,"))
	}
	if r.pos == from || !r.has("))") {
		return r.fail(reasonArithmetic)
	}
	r.pos += 2
	return true
}

// operators can follow a name in ${…}, longer ones first.
var operators = [...]string{
	":-", ":=", ":+", ":?", "-", "=", "+", "?", "%%", "%", "##", "#", "//", "/#", "/%", "/",
	"^^", "^", ",,", ",",
}

// parameter reads ${…}.
func (r *plainReader) parameter(quoted bool) bool {
	r.pos++
	if r.peek(0) == '#' && r.peek(1) != '}' {
		r.pos++
		return r.parameterName() && r.close()
	}
	if !r.parameterName() {
		return false
	}
	for _, operator := range operators {
		if r.has(operator) {
			r.pos += len(operator)
			return r.operand(quoted) && r.close()
		}
	}
	if r.peek(0) == ':' {
		r.pos++
		if !r.index() || r.peek(0) == ':' && !r.second() {
			return false
		}
	}
	return r.close()
}

// second reads the length of a slice.
func (r *plainReader) second() bool {
	r.pos++
	return r.index()
}

// index reads a number that is not also octal.
func (r *plainReader) index() bool {
	octal := r.peek(0) == '0' && r.peek(1) >= '0' && r.peek(1) <= '9'
	return !octal && r.digits()
}

// parameterName reads the name in ${…}, with a literal subscript.
func (r *plainReader) parameterName() bool {
	c := r.peek(0)
	switch {
	case isSpecial(c):
		r.pos++
		return c != '!' && c != '#' || r.peek(0) == '}'
	case r.digits():
		return true
	case !r.name():
		return false
	case r.peek(0) != '[':
		return true
	}
	r.pos++
	if r.peek(0) == '@' || r.peek(0) == '*' {
		r.pos++
	} else if !r.index() {
		return false
	}
	if r.peek(0) != ']' {
		return false
	}
	r.pos++
	return true
}

// operand reads the word after an operator of ${…}: literals and $name.
func (r *plainReader) operand(quoted bool) bool {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == '}':
			return true
		case c == '$':
			r.pos++
			if !r.name() {
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

// close reads the } that ends ${…}.
func (r *plainReader) close() bool {
	if r.peek(0) != '}' {
		return false
	}
	r.pos++
	return true
}

// brace reads a brace outside quotes: {a,b}, {1..9}, or a literal one such as {} and @{1}.
func (r *plainReader) brace() bool {
	end := strings.IndexByte(r.src[r.pos:], '}')
	if end < 0 {
		return r.fail("a brace that does not end")
	}
	for _, c := range []byte(r.src[r.pos+1 : r.pos+end]) {
		if !isLiteral(c) || strings.IndexByte("~!#[]*?^", c) >= 0 {
			return r.fail("a brace expansion with more than plain words in it")
		}
	}
	r.pos += end + 1
	return true
}
