package command

import "strings"

// simpleCall is the state of a simple command.
type simpleCall struct {
	from, to int  // its words; from is negative before the first
	set      bool // it has an assignment
	closed   bool // no word may follow
	declares bool // bash reads its words as assignments
}

// readSimple reads a simple command: assignments, words and redirections.
func (r *plainReader) readSimple() {
	c := simpleCall{from: -1}
	for r.skipBlanks(); r.reason == ""; r.skipBlanks() {
		both := r.peekByte(0) == '&'
		if (c.from >= 0 || c.set) && r.readRedirection() {
			c.closed = c.closed || both || c.from < 0
			continue
		}
		if r.isStopped() {
			break
		}
		if c.from < 0 && r.readAssignment() {
			c.set = true
			continue
		}
		r.readArgument(&c)
	}
	switch {
	case r.reason != "":
	case c.from >= 0:
		r.noteToken(tokenCall, c.from, c.to)
	case !c.set:
		r.failDoubt("a redirection or an operator in the place of a command")
	}
}

// readArgument reads one word of a simple command.
func (r *plainReader) readArgument(c *simpleCall) {
	if r.reason != "" {
		return
	}
	word, ok := r.readWord()
	if !ok || !r.checkFits(word, c) {
		return
	}
	if c.from < 0 {
		c.from = word.from
		c.declares = isDeclaration(r.src[word.from:word.to])
	}
	c.to = word.to
	r.noteToken(tokenWord, word.from, word.to)
}

// checkFits checks whether a word may be at its place in the command.
func (r *plainReader) checkFits(word piece, c *simpleCall) bool {
	text, first := r.src[word.from:word.to], c.from < 0
	switch {
	case c.closed:
		return r.failDoubt("a redirection before the name of a command, or a word behind &>")
	case first && word.brace:
		return r.failReading("a brace in the name of a command")
	case first && word.plain && (isReserved(text) || text == "let" || text[0] == '!'):
		return r.failReading("the word " + clipText(text) + " in the place of a command")
	case (first || c.declares) && isSubscripted(text):
		return r.failReading("a subscript in the place of a command or a variable")
	case (r.peekByte(0) == '<' || r.peekByte(0) == '>') && strings.Trim(text, "0123456789") == "":
		return r.failDoubt("a redirection with a long number, or before the name of a command")
	}
	return true
}

// isDeclaration reports whether bash reads the words after name as assignments.
func isDeclaration(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly", "nameref":
		return true
	}
	return false
}

// isSubscripted reports whether a word begins with NAME[.
func isSubscripted(text string) bool {
	at := strings.IndexByte(text, '[')
	return at > 0 && isName(text[:at])
}

// readAssignment reads NAME=value before a command and reports whether there was one.
func (r *plainReader) readAssignment() bool {
	from := r.pos
	if !r.skipName() {
		return false
	}
	appends := r.hasText("+=")
	if !appends && r.peekByte(0) != '=' {
		r.pos = from
		return false
	}
	r.pos++
	if appends {
		r.pos++
	}
	switch {
	case r.peekByte(0) == '(':
		if !r.readArray() {
			return false
		}
	case !r.isStopped():
		value, ok := r.readWord()
		if !ok {
			return false
		}
		if appends && (!value.plain || strings.IndexByte(r.src[value.from:value.to], '/') >= 0) {
			return r.failDoubt("an assignment with += that another shell takes for a command")
		}
	}
	r.noteToken(tokenAssign, from, r.pos)
	return true
}

// readArray reads the words of NAME=(…).
func (r *plainReader) readArray() bool {
	r.pos++
	for r.skipNewlines(); r.peekByte(0) != ')'; r.skipNewlines() {
		if r.isStopped() || r.peekByte(0) == '[' {
			return r.failReading("an array with more than words in it")
		}
		if _, ok := r.readWord(); !ok {
			return false
		}
	}
	r.pos++
	return !r.back && endsWord(r.peekByte(0)) && r.peekByte(0) != '(' ||
		r.failReading("an array with more than words in it")
}

// readRedirection reads one redirection and reports whether there was one.
func (r *plainReader) readRedirection() bool {
	from := r.pos
	if c := r.peekByte(0); c >= '0' && c <= '9' && (r.peekByte(1) == '<' || r.peekByte(1) == '>') {
		r.pos++
	}
	operator := r.operatorAt()
	if operator == "" {
		r.pos = from
		return false
	}
	at := r.pos
	r.pos += len(operator)
	switch operator {
	case "<(", ">(":
		return r.failReading("a process substitution")
	case "<&", ">&":
		return r.readDuplicate(at)
	case "<<", "<<-":
		return r.readHeredoc(at, operator == "<<-")
	}
	return r.readTarget(at)
}

// readTarget reads the file of a redirection whose operator is at the index.
func (r *plainReader) readTarget(at int) bool {
	for r.peekByte(0) == ' ' || r.peekByte(0) == '\t' {
		r.pos++
	}
	if r.isStopped() || r.peekByte(0) == '#' || r.hasText("\\\n") {
		return r.failDoubt("a redirection without a target")
	}
	target, ok := r.readWord()
	if ok && target.brace {
		ok = r.failReading("a brace in the target of a redirection")
	}
	if ok {
		r.noteToken(tokenRedirect, at, target.to)
	}
	return ok
}

// operatorAt returns the redirection operator at pos; "" for none.
func (r *plainReader) operatorAt() string {
	if c := r.peekByte(0); c != '<' && c != '>' && (c != '&' || r.peekByte(1) != '>') {
		return ""
	}
	for _, operator := range [...]string{
		"<<<", "<<-", "<<", "<&", "<>", "<(", "<", "&>>", "&>", ">>", ">&", ">|",
		">(",
	} {
		if r.hasText(operator) {
			return operator
		}
	}
	return ">"
}

// readDuplicate reads the descriptor after <& or >&: only a digit or -.
func (r *plainReader) readDuplicate(at int) bool {
	c := r.peekByte(0)
	if c != '-' && (c < '0' || c > '9') || !endsWord(r.peekByte(1)) {
		return r.failDoubt("a copied descriptor with more than a number")
	}
	r.pos++
	if r.peekByte(0) == '(' || r.peekByte(0) == '<' || r.peekByte(0) == '>' {
		return r.failDoubt("a copied descriptor with more than a number")
	}
	r.noteToken(tokenRedirect, at, r.pos)
	return true
}

// readHeredoc reads the delimiter of a here-document: a name, alone or in quotes.
func (r *plainReader) readHeredoc(at int, tabs bool) bool {
	if r.pending || r.back {
		return r.failDoubt("two here-documents in one line")
	}
	for r.peekByte(0) == ' ' {
		r.pos++
	}
	quote := r.peekByte(0)
	quoted := quote == '\'' || quote == '"'
	if quoted {
		r.pos++
	}
	from := r.pos
	if !r.skipName() {
		return r.failDoubt("a here-document with an unusual delimiter")
	}
	r.here = heredoc{end: r.src[from:r.pos], quoted: quoted, tabs: tabs}
	if quoted {
		if r.peekByte(0) != quote {
			return r.failDoubt("a here-document with an unusual delimiter")
		}
		r.pos++
	}
	if !endsWord(r.peekByte(0)) {
		return r.failDoubt("a here-document with an unusual delimiter")
	}
	r.pending = true
	r.noteToken(tokenRedirect, at, r.pos)
	return true
}
