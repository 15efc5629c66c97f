package outline

import "strings"

// bash lists the functions, exported and constant variables and aliases of a shell script.
func bash(src []byte, out *builder) {
	l := lines{src: string(src)}
	var note hashNote
	until := ""
	open, indent := -1, 0 // the function that is read, and the indentation of its name
	for {
		text, ok := l.next()
		if !ok {
			break
		}
		width, rest := indentOf(text)
		switch {
		case until != "":
			if rest == until {
				until = ""
			}
			continue
		case rest == "":
			continue
		case rest[0] == '#':
			note.add(rest, l.line)
			continue
		}
		if !strings.Contains(rest, "<<<") {
			until = hereWord(rest)
		}
		if open >= 0 && width <= indent && (rest[0] == '}' || rest[0] == ')') {
			out.end(open, l.line)
			open = -1
			continue
		}
		s := shellStatement(rest)
		s.Start, s.Line, s.Doc = l.line, l.line, note.above(l.line)
		if s.Kind == Function {
			if open >= 0 && width <= indent {
				out.end(open, l.line-1)
			}
			open, indent = out.add(s), width
			if strings.HasSuffix(rest, "}") {
				open = -1
			}
		} else if open < 0 {
			out.add(s)
		}
	}
	out.end(open, l.line)
}

// shellStatement understands a line; the symbol without a name = it declares nothing.
func shellStatement(rest string) Symbol {
	word, after := shellWord(rest)
	switch word {
	case "function":
		name, _ := shellWord(after)
		return Symbol{Name: name, Kind: Function}
	case "export", "readonly", "declare", "typeset":
		for strings.HasPrefix(after, "-") {
			_, after, _ = strings.Cut(after, " ")
		}
		name, value := leadingWord(after)
		if strings.HasPrefix(value, "=") {
			return Symbol{Name: name, Kind: Constant}
		}
		return Symbol{}
	case "alias":
		name, _, _ := strings.Cut(after, "=")
		return Symbol{Name: name, Kind: Function}
	}
	if strings.HasPrefix(strings.ReplaceAll(after[:min(len(after), 8)], " ", ""), "()") {
		return Symbol{Name: word, Kind: Function}
	}
	if strings.HasPrefix(after, "=") && upper(word) {
		return Symbol{Name: word, Kind: Variable}
	}
	return Symbol{}
}

// shellWord is like leadingWord for names of shell functions, which may contain - . and :.
func shellWord(s string) (word, rest string) {
	n := 0
	for n < len(s) && (isWord(s[n]) || isDigit(s[n]) || n > 0 && (s[n] == '-' || s[n] == '.' || s[n] == ':')) {
		n++
	}
	return s[:n], strings.TrimLeft(s[n:], " \t")
}
