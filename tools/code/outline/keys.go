package outline

import "strings"

// maxKeyDepth is how deep keys of data files are listed; what is below is data.
const maxKeyDepth = 4

// toml lists tables and keys.
func toml(src []byte, out *builder) {
	l := lines{src: string(src)}
	var note hashNote
	table, at := "", -1
	until := ""   // the quotes of the string over several lines that is open
	brackets := 0 // open in a value
	for {
		text, ok := l.next()
		if !ok {
			break
		}
		rest := strings.TrimSpace(text)
		switch {
		case until != "":
			if strings.Contains(rest, until) {
				until = ""
			}
			continue
		case brackets > 0:
			brackets = max(0, brackets+balance(rest))
			continue
		case rest == "":
			continue
		case rest[0] == '#':
			note.add(rest, l.line)
			continue
		case rest[0] == '[':
			out.end(at, l.line-1)
			name, _, _ := strings.Cut(strings.TrimLeft(rest, "["), "]")
			table = strings.TrimSpace(name)
			at = out.add(Symbol{Name: table, Kind: Section, Start: l.line, Doc: note.above(l.line)})
			continue
		}
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			continue
		}
		out.add(Symbol{
			Name: strings.Trim(strings.TrimSpace(key), `"'`), Container: table, Kind: Key,
			Start: l.line, Doc: note.above(l.line),
		})
		for _, quotes := range []string{`"""`, `'''`} {
			if strings.Count(value, quotes) == 1 {
				until = quotes
			}
		}
		if until == "" {
			brackets = max(0, balance(value))
		}
	}
	out.end(at, l.line)
}

// balance returns how many brackets a text leaves open, without what is in its strings.
func balance(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[', '{':
			n++
		case ']', '}':
			n--
		case '"', '\'':
			i = skipString(s, i)
		case '#':
			return n
		}
	}
	return n
}

// yaml lists the keys of mappings.
func yaml(src []byte, out *builder) {
	l := lines{src: string(src)}
	b := blocks{out: out}
	var note hashNote
	literal := -1 // the indentation above which lines are a block of text
	for {
		text, ok := l.next()
		if !ok {
			break
		}
		indent, rest := indentOf(text)
		switch {
		case rest == "":
			continue
		case literal >= 0 && indent > literal:
			b.seen = l.line
			continue
		case rest[0] == '#':
			note.add(rest, l.line)
			continue
		case strings.HasPrefix(rest, "---"), strings.HasPrefix(rest, "..."):
			b.leave(0)
			continue
		}
		literal = -1
		for strings.HasPrefix(rest, "- ") {
			more, after := indentOf(rest[2:])
			indent, rest = indent+2+more, after
		}
		key, value, ok := strings.Cut(rest, ":")
		if !ok || value != "" && value[0] != ' ' && value[0] != '\t' {
			b.seen = l.line
			continue
		}
		b.leave(indent)
		b.seen = l.line
		if value = strings.TrimSpace(value); value != "" && (value[0] == '|' || value[0] == '>') {
			literal = indent
		}
		name := strings.Trim(strings.TrimSpace(key), `"'`)
		if name == "" || strings.ContainsAny(name, "{}[]\"") || len(b.open) >= maxKeyDepth {
			continue
		}
		b.enter(Symbol{Name: name, Container: b.inside().name, Kind: Key, Start: l.line, Doc: note.above(l.line)}, indent)
	}
	b.leave(0)
}

// jsonKeys lists the keys of objects.
func jsonKeys(src []byte, out *builder) {
	type object struct {
		name   string
		symbol int
	}
	s := string(src)
	line, depth := 1, 0
	var open [maxKeyDepth + 1]object // by depth; lists count too
	name, at := "", -1               // the newest key, whose value may be an object
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\n':
			line++
		case '/': // comments of JSON for people
			if strings.HasPrefix(s[i:], "//") {
				i += max(0, strings.IndexByte(s[i:], '\n')-1)
			}
		case '{', '[':
			depth++
			if depth <= maxKeyDepth {
				open[depth] = object{name, at}
			}
			name, at = "", -1
		case '}', ']':
			if depth > 0 && depth <= maxKeyDepth {
				out.end(open[depth].symbol, line)
			}
			depth = max(0, depth-1)
		case '"':
			end := jsonString(s, i)
			if depth > 0 && depth <= maxKeyDepth && isKey(s, end+1) {
				name = s[min(i+1, end):end]
				at = out.add(Symbol{Name: name, Container: open[depth].name, Kind: Key, Start: line})
			}
			i = end
		}
	}
}

// jsonString returns the index of the quote that ends the string at i, or of the line's last byte.
func jsonString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && s[i+1] != '\n' {
				i++
			}
		case '"':
			return i
		case '\n':
			return i - 1
		}
	}
	return len(s) - 1
}

// isKey reports whether a colon follows.
func isKey(s string, i int) bool {
	for ; i < len(s); i++ {
		switch s[i] {
		case ' ', '\t':
		case ':':
			return true
		default:
			return false
		}
	}
	return false
}
