package command

import "strings"

// readList reads commands up to the byte end, a word that ends a list, or the end of the text.
func (r *plainReader) readList(end byte) {
	if r.depth++; r.depth > maxPlain {
		r.failReading("commands are nested too deeply to follow")
	}
	defer func() { r.depth-- }()
	for r.skipNewlines(); !r.listOver(end); r.skipNewlines() {
		r.andOr()
		r.skipBlanks()
		switch c := r.peekByte(0); {
		case c == ';' && r.peekByte(1) != ';', c == '&' && r.peekByte(1) != '&':
			r.pos++
		case c == '\n' || r.listOver(end):
		default:
			r.failReading("an operator that bash does not expect")
		}
	}
}

// listOver reports whether a list ends here.
func (r *plainReader) listOver(end byte) bool {
	switch c := r.peekByte(0); {
	case r.pos >= len(r.src):
		return true
	case c == end, c == ')', r.hasText(";;"):
		return true
	}
	switch r.keywordAt() {
	case "then", "elif", "else", "fi", "do", "done", "esac", "}":
		return true
	}
	return false
}

// keywordAt returns the reserved word at pos; "" for none.
func (r *plainReader) keywordAt() string {
	for i := r.pos; ; i++ {
		if i < len(r.src) && (r.src[i] >= 'a' && r.src[i] <= 'z' || strings.IndexByte("{}![]", r.src[i]) >= 0) {
			continue
		}
		word := r.src[r.pos:i]
		if i < len(r.src) && !endsWord(r.src[i]) || !isReserved(word) {
			return ""
		}
		return word
	}
}

// isReserved reports whether a word at the beginning of a command is grammar for bash.
func isReserved(word string) bool {
	switch word {
	case "if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "case", "esac", "select",
		"function", "coproc", "time", "{", "}", "!", "[[", "]]":
		return true
	}
	return false
}

// readWanted reads a reserved word.
func (r *plainReader) readWanted(word string) {
	if r.keywordAt() != word {
		r.failReading("a compound command that is not complete")
		return
	}
	r.pos += len(word)
}

// andOr reads pipelines joined by && and ||.
func (r *plainReader) andOr() {
	for {
		r.readPipeline()
		r.skipBlanks()
		if !r.hasText("&&") && !r.hasText("||") {
			return
		}
		r.pos += 2
		r.skipNewlines()
	}
}

// readPipeline reads commands joined by |, with time or ! before them.
func (r *plainReader) readPipeline() {
	switch r.keywordAt() {
	case "time":
		r.pos += len("time")
		r.skipBlanks()
		if c := r.peekByte(0); c < 'a' || c > 'z' || r.keywordAt() != "" {
			r.failDoubt("the word time before anything but a command")
			return
		}
	case "!":
		r.pos++
		if c := r.peekByte(0); c != ' ' && c != '\t' {
			r.failDoubt("a ! that is not alone")
			return
		}
		r.skipBlanks()
		if word := r.keywordAt(); word == "!" || word == "time" {
			r.failDoubt("a ! before " + word)
			return
		}
	}
	for {
		r.readCommand()
		r.skipBlanks()
		if r.peekByte(0) != '|' || r.peekByte(1) == '|' {
			return
		}
		r.pos++
		if r.peekByte(0) == '&' {
			r.pos++
		}
		r.skipNewlines()
	}
}

// readCommand reads one simple or compound command.
func (r *plainReader) readCommand() {
	word := r.keywordAt()
	if r.peekByte(0) == '(' {
		word = "("
	}
	if word != "" && r.back {
		r.failDoubt("a compound command inside back quotes")
		return
	}
	switch word {
	case "":
		r.readSimple()
		return
	case "(":
		r.readSubshell()
	case "{":
		r.pos++
		r.readList(0)
		r.readWanted("}")
	case "if":
		r.ifClause()
	case "while", "until":
		r.pos += len(word)
		r.doGroup(true)
	case "for":
		r.forClause()
	case "case":
		r.caseClause()
	case "[[":
		r.readTest()
	default:
		r.failReading("the word " + word + " in the place of a command")
	}
	for r.skipBlanks(); r.readRedirection(); r.skipBlanks() {
	}
}

// readSubshell reads ( list ).
func (r *plainReader) readSubshell() {
	r.pos++
	if r.peekByte(0) == '(' {
		r.failReading(reasonArithmetic)
		return
	}
	r.readList(')')
	if r.peekByte(0) != ')' {
		r.failReading("a compound command that is not complete")
		return
	}
	r.pos++
}

// ifClause reads if … then … elif … else … fi.
func (r *plainReader) ifClause() {
	r.pos += len("if")
	for {
		r.readList(0)
		r.readWanted("then")
		r.readList(0)
		if r.keywordAt() != "elif" {
			break
		}
		r.pos += len("elif")
	}
	if r.keywordAt() == "else" {
		r.pos += len("else")
		r.readList(0)
	}
	r.readWanted("fi")
}

// doGroup reads do … done, with a condition before it.
func (r *plainReader) doGroup(condition bool) {
	if condition {
		r.readList(0)
	}
	r.readWanted("do")
	r.readList(0)
	r.readWanted("done")
}

// forClause reads for NAME in WORDS; do … done.
func (r *plainReader) forClause() {
	r.pos += len("for")
	r.skipBlanks()
	if !r.skipName() {
		r.failReading(reasonArithmetic)
		return
	}
	r.skipBlanks()
	if r.keywordAt() == "in" {
		r.pos += len("in")
		for r.skipBlanks(); !r.isStopped(); r.skipBlanks() {
			r.readWord()
		}
	}
	if r.peekByte(0) == ';' {
		r.pos++
	}
	r.skipNewlines()
	r.doGroup(false)
}

// isStopped reports whether an operator, a newline or the end of the text ends a sequence of words.
func (r *plainReader) isStopped() bool {
	c := r.peekByte(0)
	return endsWord(c) && (c != '`' || r.back)
}

// caseClause reads case WORD in … esac.
func (r *plainReader) caseClause() {
	if r.inner > 0 {
		r.failReading("case inside a command substitution")
		return
	}
	r.pos += len("case")
	r.skipBlanks()
	r.readWord()
	r.skipNewlines()
	r.readWanted("in")
	for r.skipNewlines(); r.keywordAt() != "esac" && r.reason == ""; r.skipNewlines() {
		if r.peekByte(0) == '(' {
			r.pos++
		}
		if !r.readPatterns() {
			return
		}
		r.readList(0)
		if !r.hasText(";;") {
			break
		}
		r.pos += 2
	}
	r.readWanted("esac")
}

// readPatterns reads the patterns of one case and the ) after them.
func (r *plainReader) readPatterns() bool {
	for {
		r.skipBlanks()
		if r.keywordAt() != "" {
			return r.failDoubt("a pattern that is a word of the grammar")
		}
		if _, ok := r.readWord(); !ok {
			return false
		}
		r.skipBlanks()
		c := r.peekByte(0)
		r.pos++
		if c == ')' {
			return true
		}
		if c != '|' {
			return r.failReading("a compound command that is not complete")
		}
	}
}

// readTest reads [[ … ]].
func (r *plainReader) readTest() {
	r.pos += len("[[")
	for first := true; ; first = false {
		r.skipBlanks()
		if r.keywordAt() == "!" {
			r.pos++
			r.skipBlanks()
		}
		if !r.testTerm(first) {
			return
		}
		r.skipBlanks()
		if !r.hasText("&&") && !r.hasText("||") {
			break
		}
		r.pos += 2
	}
	r.readWanted("]]")
}

// testTerm reads one test. After && and || it must begin with an operator such as -f, because a shell without [[ takes
// what follows for a command.
func (r *plainReader) testTerm(first bool) bool {
	if operator := r.peekByte(1); r.peekByte(0) == '-' && operator|0x20 >= 'a' && operator|0x20 <= 'z' &&
		(r.peekByte(2) == ' ' || r.peekByte(2) == '\t') {
		if operator == 'v' || operator == 'R' {
			return r.failReading(reasonArithmetic)
		}
		r.pos += 2
		r.skipBlanks()
		_, ok := r.readWord()
		return ok
	}
	if !first {
		return r.failDoubt("a test that another shell takes for a command")
	}
	if _, ok := r.readWord(); !ok {
		return false
	}
	r.skipBlanks()
	for _, operator := range [...]string{"== ", "= ", "!= ", "=~ ", "-nt ", "-ot ", "-ef "} {
		if r.hasText(operator) {
			r.pos += len(operator)
			r.skipBlanks()
			_, ok := r.readWord()
			return ok
		}
	}
	return r.keywordAt() == "]]" || r.hasText("&&") || r.hasText("||") || r.failReading(reasonArithmetic)
}
