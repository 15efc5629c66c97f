package outline

import "strings"

// quoted skips a literal that begins with the quote c.
func (l *lexer) quoted(c byte) lexeme {
	t := lexeme{kind: tokString, text: `""`, line: l.line}
	switch {
	case c == '\'' && l.lang == Rust && l.lifetime():
		return lexeme{}
	case c == '`' && (l.lang == JavaScript || l.lang == TypeScript):
		l.template()
	case c == '`':
		l.at++
		return lexeme{kind: '`', text: "`", line: t.line}
	case c == '"' && l.lang == Java && strings.HasPrefix(l.src[l.at:], `"""`):
		l.at += 3
		l.skipTo(`"""`)
	default:
		l.simple(c, l.lang == Rust && c == '"')
	}
	return t
}

// simple skips a literal with backslash escapes. It ends with the line, unless it may contain lines.
func (l *lexer) simple(quote byte, lines bool) {
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; {
		case c == quote:
			l.at++
			return
		case c == '\\' && l.at+1 < len(l.src):
			l.at++
			if l.src[l.at] == '\n' {
				l.line++
			}
		case c == '\n' && !lines:
			return
		case c == '\n':
			l.line++
		}
	}
}

// lifetime skips the apostrophe of a lifetime in Rust; false = it is a character.
func (l *lexer) lifetime() bool {
	rest := l.src[l.at+1:]
	if rest == "" || !isWord(rest[0]) || (len(rest) > 1 && rest[1] == '\'') {
		return false
	}
	n := 0
	for n < len(rest) && (isWord(rest[n]) || isDigit(rest[n])) {
		n++
	}
	if n < len(rest) && rest[n] == '\'' && rest[0] >= 0x80 {
		return false // a character of several bytes
	}
	l.at += 1 + n
	return true
}

// rawString skips a raw string of Rust or C++ that begins here.
func (l *lexer) rawString() bool {
	rest := l.src[l.at:]
	switch l.lang {
	case Rust:
		n := 0
		for n < 2 && n < len(rest) && (rest[n] == 'b' || rest[n] == 'r' || rest[n] == 'c') {
			n++
		}
		if n == 0 || rest[n-1] != 'r' {
			return false
		}
		hashes := n
		for hashes < len(rest) && rest[hashes] == '#' {
			hashes++
		}
		if hashes >= len(rest) || rest[hashes] != '"' {
			return false
		}
		l.at += hashes + 1
		l.skipTo(`"` + rest[n:hashes])
		return true
	case C, CPP:
		for _, prefix := range []string{`R"`, `LR"`, `uR"`, `UR"`, `u8R"`} {
			after, ok := strings.CutPrefix(rest, prefix)
			open := strings.IndexByte(after[:min(len(after), 17)], '(')
			if !ok || open < 0 {
				continue
			}
			l.at += len(prefix) + open + 1
			l.skipTo(")" + after[:open] + `"`)
			return true
		}
	}
	return false
}

// template skips a template literal of JavaScript with what is embedded in it.
func (l *lexer) template() {
	stack := []byte{'`'} // what is open: a template, or braces
	for l.at++; l.at < len(l.src) && len(stack) > 0 && len(stack) < maxScopes; l.at++ {
		c := l.src[l.at]
		inText := stack[len(stack)-1] == '`'
		switch {
		case c == '\n':
			l.line++
		case c == '\\' && l.at+1 < len(l.src) && l.src[l.at+1] != '\n':
			l.at++
		case c == '`' && inText, c == '}' && !inText:
			stack = stack[:len(stack)-1]
		case inText && c == '$' && strings.HasPrefix(l.src[l.at:], "${"):
			l.at++
			stack = append(stack, '{')
		case !inText && (c == '`' || c == '{'):
			stack = append(stack, c)
		case !inText && (c == '"' || c == '\''):
			l.simple(c, false)
			l.at--
		}
	}
	l.at = min(l.at, len(l.src))
}

// expression reports whether a slash begins a regular expression rather than a division.
func (l *lexer) expression() bool {
	switch l.last {
	case tokWord:
		switch l.word {
		case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else":
			return true
		}
		return false
	case tokNumber, tokString, ')', ']', '}', '<', tokBlock: // after < it is the end tag of JSX
		return false
	}
	return true
}

// regular skips a regular expression of JavaScript, at most to the end of the line.
func (l *lexer) regular() {
	class := false
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; {
		case c == '\n':
			return
		case c == '\\' && l.at+1 < len(l.src) && l.src[l.at+1] != '\n':
			l.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.at++
			return
		}
	}
}

// directive skips a preprocessor directive. A macro is a symbol. Of alternatives, only the first is read, because
// otherwise brackets would be opened twice.
func (l *lexer) directive() {
	line := l.line
	word, rest := l.directiveLine()
	switch word {
	case "define":
		name := rest
		for i := range len(rest) {
			if !isWord(rest[i]) && !isDigit(rest[i]) {
				name = rest[:i]
				break
			}
		}
		l.out.add(Symbol{Name: name, Kind: Macro, Start: line, End: l.line, Doc: l.doc(line)})
	case "else", "elif", "elifdef", "elifndef":
		l.skipBranch()
	case "if":
		if strings.TrimSpace(rest) == "0" {
			l.skipBranch()
		}
	}
}

// directiveLine reads a directive with its continued lines. The last line end remains.
func (l *lexer) directiveLine() (word, rest string) {
	start := l.at + 1
	for {
		l.skipLine()
		if l.at >= len(l.src) || !strings.HasSuffix(strings.TrimSuffix(l.src[start:l.at], "\r"), `\`) {
			break
		}
		l.at++
		l.line++
	}
	text := strings.TrimLeft(l.src[min(start, l.at):l.at], " \t")
	n := 0
	for n < len(text) && isWord(text[n]) {
		n++
	}
	return text[:n], strings.TrimLeft(text[n:], " \t")
}

// skipBranch skips to the directive that ends a branch; #endif, or the next alternative of #if 0.
func (l *lexer) skipBranch() {
	for depth := 0; l.at < len(l.src); {
		if l.src[l.at] == '\n' {
			l.at++
			l.line++
		}
		line := strings.TrimLeft(l.src[l.at:min(len(l.src), l.at+200)], " \t")
		if !strings.HasPrefix(line, "#") {
			l.skipLine()
			continue
		}
		l.at += strings.IndexByte(l.src[l.at:], '#')
		word, _ := l.directiveLine()
		switch word {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			depth--
		}
		if depth < 0 {
			return
		}
	}
}
