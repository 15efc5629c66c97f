package command

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPlain limits the nesting of lists in the plain grammar.
const maxPlain = 24

// plainReader reads the plain grammar: the small part of bash that every shell and parser reads in the same way. It is
// independent of the parser in [walker]. Both must find the same, or else the text is not certain.
//
// It accepts simple commands, pipelines, lists, groups, subshells, if, while, until, for, case, [[ ]] without
// arithmetic, here-documents with a plain delimiter, and words made of literals, quotes, simple expansions and command
// substitutions. It stops at the first other construct and says what it was.
type plainReader struct {
	src     string
	pos     int
	depth   int
	inner   int  // command substitutions around pos
	back    bool // inside backquotes
	reason  string
	doubt   bool // parsers may find different commands behind the reason
	tokens  []token
	here    heredoc
	pending bool // the body of a here-document begins at the next newline
}

// heredoc is a here-document whose body was not read yet.
type heredoc struct {
	end    string
	quoted bool
	tabs   bool
}

// token is one piece of the text on which both readings must agree: its beginning, its end and its kind. It is a
// number, so that lists of tokens can be sorted quickly; MaxText fits.
type token uint64

// tokenAt returns a token of a kind between two offsets.
func tokenAt(kind byte, from, to int) token { return token(from)<<32 | token(to)<<8 | token(kind) }

// Kinds of tokens.
const (
	tokenCall     = 'C' // a simple command, from its first to its last word
	tokenWord     = 'w' // a word of it
	tokenAssign   = 'a' // an assignment
	tokenRedirect = 'r' // a redirection, from its operator to the end of its target
	tokenSubst    = 's' // a command substitution
	tokenBody     = 'h' // the first byte of a here-document
)

// readPlain reads text. The result says why it is not plain; otherwise its tokens are complete.
func readPlain(text string, tokens []token) *plainReader {
	r := &plainReader{src: text, tokens: tokens}
	if !r.refuseControl() {
		return r
	}
	r.readList(0)
	if r.reason == "" && r.pos < len(r.src) {
		r.failReading("an operator that bash does not expect")
	}
	if r.pending {
		r.failDoubt("a here-document that does not end")
	}
	return r
}

// failReading records the first reason why the text is not plain and ends the reading. It returns false.
func (r *plainReader) failReading(reason string) bool {
	if r.reason == "" {
		r.reason = reason
	}
	r.pos = len(r.src)
	return false
}

// failDoubt is fail for constructs behind which bash may run other commands than the parser finds.
func (r *plainReader) failDoubt(reason string) bool {
	r.doubt = r.doubt || r.reason == ""
	return r.failReading(reason)
}

// refuseControl refuses the characters that parsers drop or shells use internally.
func (r *plainReader) refuseControl() bool {
	for i := range len(r.src) {
		if c := r.src[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return r.failDoubt("a control character")
		}
	}
	return true
}

// peekByte returns the byte n places ahead; 0 beyond the end.
func (r *plainReader) peekByte(n int) byte {
	if r.pos+n < len(r.src) {
		return r.src[r.pos+n]
	}
	return 0
}

// hasText reports whether the rest begins with text.
func (r *plainReader) hasText(text string) bool { return strings.HasPrefix(r.src[r.pos:], text) }

// noteToken adds a token.
func (r *plainReader) noteToken(kind byte, from, to int) {
	r.tokens = append(r.tokens, tokenAt(kind, from, to))
}

// skipBlanks skips blanks, continued lines and a comment, but not the newline that ends it.
func (r *plainReader) skipBlanks() {
	continued := false
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == ' ' || c == '\t':
			r.pos++
		case c == '\\' && r.peekByte(1) == '\n':
			if r.pending || r.back || r.pos == 0 || r.src[r.pos-1] != ' ' && r.src[r.pos-1] != '\t' {
				r.failDoubt("a backslash before a newline inside a word")
				return
			}
			r.pos += 2
			continued = true
		case c == '#':
			r.skipComment(continued)
			return
		default:
			return
		}
	}
}

// skipComment skips a comment.
func (r *plainReader) skipComment(continued bool) {
	end := strings.IndexByte(r.src[r.pos:], '\n')
	if end < 0 {
		end = len(r.src) - r.pos
	}
	switch {
	case r.inner > 0:
		r.failDoubt("a comment inside a command substitution")
	case continued || r.src[r.pos+end-1] == '\\':
		r.failDoubt("a comment beside a backslash and a newline")
	default:
		r.pos += end
	}
}

// skipNewlines skips blanks, comments and newlines, with the here-documents after them.
func (r *plainReader) skipNewlines() {
	for r.skipBlanks(); r.peekByte(0) == '\n'; r.skipBlanks() {
		r.skipNewline()
	}
}

// skipNewline skips one newline and the body of the here-document that began on its line.
func (r *plainReader) skipNewline() {
	r.pos++
	if !r.pending {
		return
	}
	r.pending = false
	from := r.pos
	for r.pos < len(r.src) {
		line, _, whole := strings.Cut(r.src[r.pos:], "\n")
		if r.here.tabs {
			stripped := strings.TrimLeft(line, "\t")
			r.pos += len(line) - len(stripped)
			line = stripped
		}
		if line == r.here.end {
			if from < r.pos {
				r.noteToken(tokenBody, from, from)
			}
			r.pos += len(line)
			if r.peekByte(0) == '\n' {
				r.pos++
			}
			return
		}
		if !whole || !r.bodyLine(line) {
			break
		}
	}
	r.failDoubt("a here-document that does not end")
}

// bodyLine reads one line of a here-document.
func (r *plainReader) bodyLine(line string) bool {
	end := r.pos + len(line)
	if !r.here.quoted {
		for r.pos < end {
			switch c := r.src[r.pos]; {
			case c == '`' || c == '$' && r.peekByte(1) == '(':
				return r.failReading("a command inside a here-document")
			case c == '$':
				if !r.readDollar(true) {
					return false
				}
			case c == '\\' && strings.IndexByte("$`\\", r.peekByte(1)) >= 0 && r.peekByte(1) != 0:
				r.pos += 2
			case c == '\\' && r.pos+1 == end:
				return r.failDoubt("a backslash before a newline inside a here-document")
			case c == '\\':
				return r.failReading("a backslash inside a here-document")
			default:
				r.pos++
			}
		}
	}
	r.pos = end + 1
	return true
}

// skipName skips a variable name and reports whether there was one.
func (r *plainReader) skipName() bool {
	from := r.pos
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (r.pos == from || c < '0' || c > '9') {
			break
		}
		r.pos++
	}
	return r.pos > from
}

// skipDigits skips decimal digits and reports whether there was one.
func (r *plainReader) skipDigits() bool {
	from := r.pos
	for r.peekByte(0) >= '0' && r.peekByte(0) <= '9' {
		r.pos++
	}
	return r.pos > from
}

// readVisible reads one non-ASCII character outside quotes.
func (r *plainReader) readVisible() bool {
	c, size := utf8.DecodeRuneInString(r.src[r.pos:])
	if c == utf8.RuneError || !unicode.IsGraphic(c) || unicode.IsSpace(c) {
		return r.failDoubt("an invisible character outside quotes")
	}
	r.pos += size
	return true
}
