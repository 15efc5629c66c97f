package outline

// maxHead is how many tokens of a statement are kept. A longer one is no declaration.
const maxHead = 320

// scopeKind is what a pair of braces contains.
type scopeKind byte

const (
	inFile   scopeKind = iota // declarations
	inType                    // members of a type
	inObject                  // members of an object literal of JavaScript
	inCode                    // statements, in which only functions and types are looked for
	inOpaque                  // nothing that is looked for
)

// scope is an open pair of braces.
type scope struct {
	kind   scopeKind
	name   string // of the container
	symbol int    // -1 = none
	base   int    // where the head of the statement around it ends
	depth  int    // of brackets in that statement
	goesOn bool   // the braces are an expression: the statement continues after them
}

// declared is how a statement was understood.
type declared struct {
	symbols []Symbol
	opens   scopeKind // what its braces contain
	name    string    // of that container
	goesOn  bool      // the braces are part of an expression
}

// braceReader follows the statements of a language with braces.
type braceReader struct {
	lexer
	head   []lexeme // of the statements that are open, the innermost last
	base   int      // where the innermost begins
	depth  int      // of brackets in it
	scopes []scope
	extra  int // braces open beyond the limit
	docs   string
	dialect
}

// dialect is what differs between the languages.
type dialect struct {
	newlines bool // a line end can end a statement
	// classify understands a statement that ends with its braces (open), or with its end.
	classify func(p *braceReader, head []lexeme, open bool) declared
}

func braces(lang Language, src []byte, out *builder) {
	p := &braceReader{lexer: lexer{lang: lang, src: string(src), line: 1, bol: true, out: out}}
	p.scopes = append(p.scopes, scope{kind: inFile, symbol: -1})
	switch lang {
	case Rust:
		p.dialect = dialect{classify: classifyRust}
	case Java:
		p.dialect = dialect{classify: classifyJava}
	case JavaScript, TypeScript:
		p.dialect = dialect{newlines: true, classify: classifyScript}
	default:
		p.dialect = dialect{classify: classifyC}
	}
	p.run()
}

func (p *braceReader) run() {
	for {
		t := p.next()
		switch t.kind {
		case tokEnd:
			for p.finish(t.line); len(p.scopes) > 1; p.finish(t.line) { // what is never closed
				p.out.end(p.top().symbol, t.line)
				p.leave()
			}
			return
		case '\n':
			if p.newlines && p.depth == 0 && p.ends() {
				p.finish(t.line)
			}
		case '{':
			p.open(t)
		case '}':
			p.close(t.line)
		case '(', '[':
			p.push(t)
			p.depth++
		case ')', ']':
			p.closing(t)
		case ';':
			if p.depth == 0 {
				p.finish(t.line)
			}
		case ',':
			if p.depth == 0 && p.top().kind == inObject {
				p.finish(t.line)
				continue
			}
			p.push(t)
		default:
			p.push(t)
		}
	}
}

func (p *braceReader) top() *scope { return &p.scopes[len(p.scopes)-1] }

// statement returns the tokens of the statement so far.
func (p *braceReader) statement() []lexeme { return p.head[p.base:] }

// push appends a token to the statement. The first one determines the comment that belongs to it.
func (p *braceReader) push(t lexeme) {
	if len(p.head) == p.base {
		p.docs = p.doc(t.line)
	}
	if len(p.head)-p.base < maxHead {
		t.depth = p.depth
		p.head = append(p.head, t)
	}
}

// ends reports whether a line end after the last token ends the statement.
func (p *braceReader) ends() bool {
	s := p.statement()
	if len(s) == 0 {
		return false
	}
	switch last := s[len(s)-1]; last.kind {
	case tokNumber, tokString, ')', ']', tokBlock, '}':
	case tokWord:
		switch last.text {
		case "extends", "implements", "const", "export", "default":
			return false
		}
	case '+', '-': // i++ and i--
		return len(s) > 1 && s[len(s)-2].kind == last.kind
	default:
		return false
	}
	return !p.continues()
}

// continues reports whether the next line continues a statement of JavaScript.
func (p *braceReader) continues() bool {
	for i := p.at; i < len(p.src); i++ {
		switch c := p.src[i]; c {
		case ' ', '\t', '\r', '\n':
		case '{', '.', '?', ':', '&', '|', '=', '+', '*', '<', '>', ',', ')':
			return true
		default:
			return len(p.src)-i > 7 && (p.src[i:i+7] == "extends" || p.src[i:i+7] == "impleme")
		}
	}
	return false
}

func (p *braceReader) closing(t lexeme) {
	if p.depth > 0 {
		p.depth--
		p.push(t)
	}
}

// open handles an opening brace.
func (p *braceReader) open(t lexeme) {
	around := p.top().kind
	if p.depth > 0 || around == inOpaque { // an argument, or something in which nothing is looked for
		kind := inOpaque
		if (p.lang == JavaScript || p.lang == TypeScript) && around != inOpaque {
			kind = inCode
		}
		p.enter(scope{kind: kind, name: p.top().name, symbol: -1, goesOn: true})
		return
	}
	if p.full() {
		p.enter(scope{kind: inOpaque, symbol: -1, goesOn: true})
		return
	}
	d := p.classify(p, p.statement(), true)
	symbol := p.record(d, t.line)
	p.enter(scope{kind: d.opens, name: d.name, symbol: symbol, goesOn: d.goesOn})
}

// full reports whether the statement, or what is around it, is too long to be understood.
func (p *braceReader) full() bool { return p.extra > 0 || len(p.statement()) >= maxHead }

// record adds the symbols of a statement and returns the index of the last one.
func (p *braceReader) record(d declared, line int) int {
	at := -1
	for _, s := range d.symbols {
		s.End = line
		if s.Doc == "" {
			s.Doc = p.docs
		}
		at = p.out.add(s)
	}
	return at
}

// enter begins a scope with an empty statement.
func (p *braceReader) enter(s scope) {
	if len(p.scopes) >= maxScopes || len(p.head) > maxScopes*8 {
		p.extra++
		p.out.Truncated = true
		return
	}
	s.base, s.depth = p.base, p.depth
	p.scopes = append(p.scopes, s)
	p.base, p.depth = len(p.head), 0
}

// leave ends a scope; the statement around it continues, or ends.
func (p *braceReader) leave() {
	s := *p.top()
	p.scopes = p.scopes[:len(p.scopes)-1]
	p.head, p.base, p.depth = p.head[:p.base], s.base, s.depth
	if !s.goesOn {
		p.head = p.head[:p.base]
		p.depth = 0
	}
}

// close handles a closing brace.
func (p *braceReader) close(line int) {
	switch {
	case p.extra > 0:
		p.extra--
		return
	case len(p.scopes) == 1: // one too many
		p.head, p.depth = p.head[:p.base], 0
		return
	}
	p.finish(line)
	s := *p.top()
	p.out.end(s.symbol, line)
	p.leave()
	if s.goesOn {
		p.push(lexeme{kind: tokBlock, text: "{}", line: line})
	}
}

// finish ends a statement without braces.
func (p *braceReader) finish(line int) {
	if s := p.statement(); len(s) > 0 && p.top().kind != inOpaque && !p.full() {
		p.record(p.classify(p, s, false), line)
	}
	p.head, p.depth = p.head[:p.base], 0
}
