package command

import "strings"

// list reads commands up to the byte end, a word that ends a list, or the end of the text.
func (r *plainReader) list(end byte) {
	if r.depth++; r.depth > maxPlain {
		r.fail("commands are nested too deeply to follow")
	}
	defer func() { r.depth-- }()
	for r.newlines(); !r.over(end); r.newlines() {
		r.andOr()
		r.blanks()
		switch c := r.peek(0); {
		case c == ';' && r.peek(1) != ';', c == '&' && r.peek(1) != '&':
			r.pos++
		case c == '\n' || r.over(end):
		default:
			r.fail("an operator that bash does not expect")
		}
	}
}

// over reports whether a list ends here.
func (r *plainReader) over(end byte) bool {
	switch c := r.peek(0); {
	case r.pos >= len(r.src):
		return true
	case c == end, c == ')', r.has(";;"):
		return true
	}
	switch r.keyword() {
	case "then", "elif", "else", "fi", "do", "done", "esac", "}":
		return true
	}
	return false
}

// keyword returns the reserved word at pos; "" for none.
func (r *plainReader) keyword() string {
	for i := r.pos; ; i++ {
		if i < len(r.src) && (r.src[i] >= 'a' && r.src[i] <= 'z' || strings.IndexByte("{}![]", r.src[i]) >= 0) {
			continue
		}
		word := r.src[r.pos:i]
		if i < len(r.src) && !ends(r.src[i]) || !reserved(word) {
			return ""
		}
		return word
	}
}

// reserved reports whether a word at the beginning of a command is grammar for bash.
func reserved(word string) bool {
	switch word {
	case "if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "case", "esac", "select",
		"function", "coproc", "time", "{", "}", "!", "[[", "]]":
		return true
	}
	return false
}

// want reads a reserved word.
func (r *plainReader) want(word string) {
	if r.keyword() != word {
		r.fail("a compound command that is not complete")
		return
	}
	r.pos += len(word)
}

// andOr reads pipelines joined by && and ||.
func (r *plainReader) andOr() {
	for {
		r.pipeline()
		r.blanks()
		if !r.has("&&") && !r.has("||") {
			return
		}
		r.pos += 2
		r.newlines()
	}
}

// pipeline reads commands joined by |, with time or ! before them.
func (r *plainReader) pipeline() {
	switch r.keyword() {
	case "time":
		r.pos += len("time")
		r.blanks()
		if c := r.peek(0); c < 'a' || c > 'z' || r.keyword() != "" {
			r.failDoubt("the word time before anything but a command")
			return
		}
	case "!":
		r.pos++
		if c := r.peek(0); c != ' ' && c != '\t' {
			r.failDoubt("a ! that is not alone")
			return
		}
		r.blanks()
		if word := r.keyword(); word == "!" || word == "time" {
			r.failDoubt("a ! before " + word)
			return
		}
	}
	for {
		r.command()
		r.blanks()
		if r.peek(0) != '|' || r.peek(1) == '|' {
			return
		}
		r.pos++
		if r.peek(0) == '&' {
			r.pos++
		}
		r.newlines()
	}
}

// command reads one simple or compound command.
func (r *plainReader) command() {
	word := r.keyword()
	if r.peek(0) == '(' {
		word = "("
	}
	if word != "" && r.back {
		r.failDoubt("a compound command inside back quotes")
		return
	}
	switch word {
	case "":
		r.simple()
		return
	case "(":
		r.subshell()
	case "{":
		r.pos++
		r.list(0)
		r.want("}")
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
		r.test()
	default:
		r.fail("the word " + word + " in the place of a command")
	}
	for r.blanks(); r.redirection(); r.blanks() {
	}
}

// subshell reads ( list ).
func (r *plainReader) subshell() {
	r.pos++
	if r.peek(0) == '(' {
		r.fail(reasonArithmetic)
		return
	}
	r.list(')')
	if r.peek(0) != ')' {
		r.fail("a compound command that is not complete")
		return
	}
	r.pos++
}

// ifClause reads if … then … elif … else … fi.
func (r *plainReader) ifClause() {
	r.pos += len("if")
	for {
		r.list(0)
		r.want("then")
		r.list(0)
		if r.keyword() != "elif" {
			break
		}
		r.pos += len("elif")
	}
	if r.keyword() == "else" {
		r.pos += len("else")
		r.list(0)
	}
	r.want("fi")
}

// doGroup reads do … done, with a condition before it.
func (r *plainReader) doGroup(condition bool) {
	if condition {
		r.list(0)
	}
	r.want("do")
	r.list(0)
	r.want("done")
}

// forClause reads for NAME in WORDS; do … done.
func (r *plainReader) forClause() {
	r.pos += len("for")
	r.blanks()
	if !r.name() {
		r.fail(reasonArithmetic)
		return
	}
	r.blanks()
	if r.keyword() == "in" {
		r.pos += len("in")
		for r.blanks(); !r.stopped(); r.blanks() {
			r.word()
		}
	}
	if r.peek(0) == ';' {
		r.pos++
	}
	r.newlines()
	r.doGroup(false)
}

// stopped reports whether an operator, a newline or the end of the text ends a sequence of words.
func (r *plainReader) stopped() bool {
	c := r.peek(0)
	return ends(c) && (c != '`' || r.back)
}

// caseClause reads case WORD in … esac.
func (r *plainReader) caseClause() {
	if r.inner > 0 {
		r.fail("case inside a command substitution")
		return
	}
	r.pos += len("case")
	r.blanks()
	r.word()
	r.newlines()
	r.want("in")
	for r.newlines(); r.keyword() != "esac" && r.reason == ""; r.newlines() {
		if r.peek(0) == '(' {
			r.pos++
		}
		if !r.patterns() {
			return
		}
		r.list(0)
		if !r.has(";;") {
			break
		}
		r.pos += 2
	}
	r.want("esac")
}

// patterns reads the patterns of one case and the ) after them.
func (r *plainReader) patterns() bool {
	for {
		r.blanks()
		if r.keyword() != "" {
			return r.failDoubt("a pattern that is a word of the grammar")
		}
		if _, ok := r.word(); !ok {
			return false
		}
		r.blanks()
		c := r.peek(0)
		r.pos++
		if c == ')' {
			return true
		}
		if c != '|' {
			return r.fail("a compound command that is not complete")
		}
	}
}

// test reads [[ … ]].
func (r *plainReader) test() {
	r.pos += len("[[")
	for first := true; ; first = false {
		r.blanks()
		if r.keyword() == "!" {
			r.pos++
			r.blanks()
		}
		if !r.testTerm(first) {
			return
		}
		r.blanks()
		if !r.has("&&") && !r.has("||") {
			break
		}
		r.pos += 2
	}
	r.want("]]")
}

// testTerm reads one test. After && and || it must begin with an operator such as -f, because a shell without [[ takes
// what follows for a command.
func (r *plainReader) testTerm(first bool) bool {
	if operator := r.peek(1); r.peek(0) == '-' && operator|0x20 >= 'a' && operator|0x20 <= 'z' &&
		(r.peek(2) == ' ' || r.peek(2) == '\t') {
		if operator == 'v' || operator == 'R' {
			return r.fail(reasonArithmetic)
		}
		r.pos += 2
		r.blanks()
		_, ok := r.word()
		return ok
	}
	if !first {
		return r.failDoubt("a test that another shell takes for a command")
	}
	if _, ok := r.word(); !ok {
		return false
	}
	r.blanks()
	for _, operator := range [...]string{"== ", "= ", "!= ", "=~ ", "-nt ", "-ot ", "-ef "} {
		if r.has(operator) {
			r.pos += len(operator)
			r.blanks()
			_, ok := r.word()
			return ok
		}
	}
	return r.keyword() == "]]" || r.has("&&") || r.has("||") || r.fail(reasonArithmetic)
}
