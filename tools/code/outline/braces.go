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
	inGroup                   // the parentheses of const ( … ) in Go
	inOpaque                  // nothing that is looked for
)

// scope is an open pair of braces.
type scope struct {
	kind    scopeKind
	name    string // of the container
	keyword string // in a group of Go
	symbol  int    // -1 = none
	base    int    // where the head of the statement around it ends
	depth   int    // of brackets in that statement
	goesOn  bool   // the braces are an expression: the statement continues after them
}

// declared is how a statement was understood.
type declared struct {
	symbols []Symbol
	opens   scopeKind // what its braces contain
	name    string    // of that container
	goesOn  bool      // the braces are part of an expression
}

// parser follows the statements of a language with braces.
type parser struct {
	lexer
	head   []token // of the statements that are open, the innermost last
	base   int     // where the innermost begins
	depth  int     // of brackets in it
	scopes []scope
	extra  int // braces open beyond the limit
	docs   string
	dialect
}

// dialect is what differs between the languages.
type dialect struct {
	newlines bool // a line end can end a statement
	// classify understands a statement that ends with its braces (open), or with its end.
	classify func(p *parser, head []token, open bool) declared
}

func braces(lang Language, src []byte, out *builder) {
	p := &parser{lexer: lexer{lang: lang, src: string(src), line: 1, bol: true, out: out}}
	p.scopes = append(p.scopes, scope{kind: inFile, symbol: -1})
	switch lang {
	case Go:
		p.dialect = dialect{newlines: true, classify: classifyGo}
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

func (p *parser) run() {
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
		case '(':
			if p.group() {
				continue
			}
			p.push(t)
			p.depth++
		case '[':
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

func (p *parser) top() *scope { return &p.scopes[len(p.scopes)-1] }

// statement returns the tokens of the statement so far.
func (p *parser) statement() []token { return p.head[p.base:] }

// push appends a token to the statement. The first one determines the comment that belongs to it.
func (p *parser) push(t token) {
	if len(p.head) == p.base {
		p.docs = p.doc(t.line)
	}
	if len(p.head)-p.base < maxHead {
		t.depth = p.depth
		p.head = append(p.head, t)
	}
}

// ends reports whether a line end after the last token ends the statement.
func (p *parser) ends() bool {
	s := p.statement()
	if len(s) == 0 {
		return false
	}
	switch last := s[len(s)-1]; last.kind {
	case tokNumber, tokString, ')', ']', tokBlock, '}':
	case tokWord:
		if p.lang != Go && (last.text == "extends" || last.text == "implements" || last.text == "const" || last.text == "export" || last.text == "default") {
			return false
		}
	case '+', '-': // i++ and i--
		return len(s) > 1 && s[len(s)-2].kind == last.kind
	default:
		return false
	}
	return p.lang == Go || !p.continues()
}

// continues reports whether the next line continues a statement of JavaScript.
func (p *parser) continues() bool {
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

// group opens the parentheses of a group of declarations in Go.
func (p *parser) group() bool {
	s := p.statement()
	if p.lang != Go || p.depth != 0 || p.top().kind != inFile || len(s) != 1 {
		return false
	}
	switch s[0].text {
	case "const", "var", "type", "import":
	default:
		return false
	}
	p.enter(scope{kind: inGroup, keyword: s[0].text, symbol: -1})
	return true
}

func (p *parser) closing(t token) {
	if p.depth > 0 {
		p.depth--
		p.push(t)
		return
	}
	if t.kind == ')' && p.top().kind == inGroup {
		p.finish(t.line)
		p.leave()
	}
}

// open handles an opening brace.
func (p *parser) open(t token) {
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
func (p *parser) full() bool { return p.extra > 0 || len(p.statement()) >= maxHead }

// record adds the symbols of a statement and returns the index of the last one.
func (p *parser) record(d declared, line int) int {
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
func (p *parser) enter(s scope) {
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
func (p *parser) leave() {
	s := *p.top()
	p.scopes = p.scopes[:len(p.scopes)-1]
	p.head, p.base, p.depth = p.head[:p.base], s.base, s.depth
	if !s.goesOn {
		p.head = p.head[:p.base]
		p.depth = 0
	}
}

// close handles a closing brace.
func (p *parser) close(line int) {
	switch {
	case p.extra > 0:
		p.extra--
		return
	case len(p.scopes) == 1: // one too many
		p.head, p.depth = p.head[:p.base], 0
		return
	case p.top().kind == inGroup:
		return
	}
	p.finish(line)
	s := *p.top()
	p.out.end(s.symbol, line)
	p.leave()
	if s.goesOn {
		p.push(token{kind: tokBlock, text: "{}", line: line})
	}
}

// finish ends a statement without braces.
func (p *parser) finish(line int) {
	if s := p.statement(); len(s) > 0 && p.top().kind != inOpaque && !p.full() {
		p.record(p.classify(p, s, false), line)
	}
	p.head, p.depth = p.head[:p.base], 0
}
