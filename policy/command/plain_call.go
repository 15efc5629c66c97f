package command

import "strings"

// simpleCall is the state of a simple command.
type simpleCall struct {
	from, to int  // its words; from is negative before the first
	set      bool // it has an assignment
	closed   bool // no word may follow
	declares bool // bash reads its words as assignments
}

// simple reads a simple command: assignments, words and redirections.
func (r *plainReader) simple() {
	c := simpleCall{from: -1}
	for r.blanks(); r.reason == ""; r.blanks() {
		both := r.peek(0) == '&'
		if (c.from >= 0 || c.set) && r.redirection() {
			c.closed = c.closed || both || c.from < 0
			continue
		}
		if r.stopped() {
			break
		}
		if c.from < 0 && r.assignment() {
			c.set = true
			continue
		}
		r.argument(&c)
	}
	switch {
	case r.reason != "":
	case c.from >= 0:
		r.note(tokenCall, c.from, c.to)
	case !c.set:
		r.failDoubt("a redirection or an operator in the place of a command")
	}
}

// argument reads one word of a simple command.
func (r *plainReader) argument(c *simpleCall) {
	if r.reason != "" {
		return
	}
	word, ok := r.word()
	if !ok || !r.fits(word, c) {
		return
	}
	if c.from < 0 {
		c.from = word.from
		c.declares = declaration(r.src[word.from:word.to])
	}
	c.to = word.to
	r.note(tokenWord, word.from, word.to)
}

// fits checks whether a word may be at its place in the command.
func (r *plainReader) fits(word piece, c *simpleCall) bool {
	text, first := r.src[word.from:word.to], c.from < 0
	switch {
	case c.closed:
		return r.failDoubt("a redirection before the name of a command, or a word behind &>")
	case first && word.brace:
		return r.fail("a brace in the name of a command")
	case first && word.plain && (reserved(text) || text == "let" || text[0] == '!'):
		return r.fail("the word " + clip(text) + " in the place of a command")
	case (first || c.declares) && subscripted(text):
		return r.fail("a subscript in the place of a command or a variable")
	case (r.peek(0) == '<' || r.peek(0) == '>') && strings.Trim(text, "0123456789") == "":
		return r.failDoubt("a redirection with a long number, or before the name of a command")
	}
	return true
}

// declaration reports whether bash reads the words after name as assignments.
func declaration(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly", "nameref":
		return true
	}
	return false
}

// subscripted reports whether a word begins with NAME[.
func subscripted(text string) bool {
	at := strings.IndexByte(text, '[')
	return at > 0 && isName(text[:at])
}

// assignment reads NAME=value before a command and reports whether there was one.
func (r *plainReader) assignment() bool {
	from := r.pos
	if !r.name() {
		return false
	}
	appends := r.has("+=")
	if !appends && r.peek(0) != '=' {
		r.pos = from
		return false
	}
	r.pos++
	if appends {
		r.pos++
	}
	switch {
	case r.peek(0) == '(':
		if !r.array() {
			return false
		}
	case !r.stopped():
		value, ok := r.word()
		if !ok {
			return false
		}
		if appends && (!value.plain || strings.IndexByte(r.src[value.from:value.to], '/') >= 0) {
			return r.failDoubt("an assignment with += that another shell takes for a command")
		}
	}
	r.note(tokenAssign, from, r.pos)
	return true
}

// array reads the words of NAME=(…).
func (r *plainReader) array() bool {
	r.pos++
	for r.newlines(); r.peek(0) != ')'; r.newlines() {
		if r.stopped() || r.peek(0) == '[' {
			return r.fail("an array with more than words in it")
		}
		if _, ok := r.word(); !ok {
			return false
		}
	}
	r.pos++
	return !r.back && ends(r.peek(0)) && r.peek(0) != '(' || r.fail("an array with more than words in it")
}

// redirection reads one redirection and reports whether there was one.
func (r *plainReader) redirection() bool {
	from := r.pos
	if c := r.peek(0); c >= '0' && c <= '9' && (r.peek(1) == '<' || r.peek(1) == '>') {
		r.pos++
	}
	operator := r.operator()
	if operator == "" {
		r.pos = from
		return false
	}
	at := r.pos
	r.pos += len(operator)
	switch operator {
	case "<(", ">(":
		return r.fail("a process substitution")
	case "<&", ">&":
		return r.duplicate(at)
	case "<<", "<<-":
		return r.heredoc(at, operator == "<<-")
	}
	return r.target(at)
}

// target reads the file of a redirection whose operator is at the index.
func (r *plainReader) target(at int) bool {
	for r.peek(0) == ' ' || r.peek(0) == '\t' {
		r.pos++
	}
	if r.stopped() || r.peek(0) == '#' || r.has("\\\n") {
		return r.failDoubt("a redirection without a target")
	}
	target, ok := r.word()
	if ok && target.brace {
		ok = r.fail("a brace in the target of a redirection")
	}
	if ok {
		r.note(tokenRedirect, at, target.to)
	}
	return ok
}

// operator returns the redirection operator at pos; "" for none.
func (r *plainReader) operator() string {
	if c := r.peek(0); c != '<' && c != '>' && (c != '&' || r.peek(1) != '>') {
		return ""
	}
	for _, operator := range [...]string{
		"<<<", "<<-", "<<", "<&", "<>", "<(", "<", "&>>", "&>", ">>", ">&", ">|",
		">(",
	} {
		if r.has(operator) {
			return operator
		}
	}
	return ">"
}

// duplicate reads the descriptor after <& or >&: only a digit or -.
func (r *plainReader) duplicate(at int) bool {
	c := r.peek(0)
	if c != '-' && (c < '0' || c > '9') || !ends(r.peek(1)) {
		return r.failDoubt("a copied descriptor with more than a number")
	}
	r.pos++
	if r.peek(0) == '(' || r.peek(0) == '<' || r.peek(0) == '>' {
		return r.failDoubt("a copied descriptor with more than a number")
	}
	r.note(tokenRedirect, at, r.pos)
	return true
}

// heredoc reads the delimiter of a here-document: a name, alone or in quotes.
func (r *plainReader) heredoc(at int, tabs bool) bool {
	if r.pending || r.back {
		return r.failDoubt("two here-documents in one line")
	}
	for r.peek(0) == ' ' {
		r.pos++
	}
	quote := r.peek(0)
	quoted := quote == '\'' || quote == '"'
	if quoted {
		r.pos++
	}
	from := r.pos
	if !r.name() {
		return r.failDoubt("a here-document with an unusual delimiter")
	}
	r.here = heredoc{end: r.src[from:r.pos], quoted: quoted, tabs: tabs}
	if quoted {
		if r.peek(0) != quote {
			return r.failDoubt("a here-document with an unusual delimiter")
		}
		r.pos++
	}
	if !ends(r.peek(0)) {
		return r.failDoubt("a here-document with an unusual delimiter")
	}
	r.pending = true
	r.note(tokenRedirect, at, r.pos)
	return true
}
