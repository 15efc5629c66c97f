package outline

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxKeyDepth is how deep keys of data files are listed; what is below is data.
const maxKeyDepth = 4

// tomlFile lists tables and their keys.
type tomlFile struct {
	*builder
	unstable.Parser
	src   []byte
	note  hashNote
	table string
	open  int // the symbol of the table
	from  int // where what is parsed begins: after the last mistake
	at    int // how far lines are counted, in src
	line  int // the line at at
}

// toml lists tables and keys. After a mistake it goes on with the line of the mistake, or with the next one.
func toml(src []byte, out *builder) {
	t := tomlFile{builder: out, src: src, open: -1, line: 1}
	t.KeepComments = true
	for {
		t.Reset(src[t.from:])
		for t.NextExpression() {
			t.expression(t.Expression())
		}
		var mistake *unstable.ParserError
		if !errors.As(t.Error(), &mistake) {
			break
		}
		data := t.Data()
		wrong := int(t.Range(mistake.Highlight).Offset)
		next := bytes.LastIndexByte(data[:wrong], '\n') + 1
		if next == 0 { // it is in the first line
			next = bytes.IndexByte(data, '\n') + 1
		}
		if next == 0 {
			break
		}
		t.from += next
	}
	t.end(t.open, t.lineOf(len(bytes.TrimSuffix(t.Data(), []byte("\n")))))
}

func (t *tomlFile) expression(e *unstable.Node) {
	if e.Kind == unstable.Comment {
		t.note.add(string(e.Data), t.lineOf(int(e.Raw.Offset)))
		return
	}
	var names []string
	line := 0
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		names = append(names, string(t.Raw(key.Raw)))
		if line == 0 {
			line = t.lineOf(int(key.Raw.Offset))
		}
	}
	s := Symbol{Name: strings.Join(names, "."), Start: line, Doc: t.note.above(line)}
	if e.Kind == unstable.KeyValue {
		s.Kind, s.Container = Key, t.table
		s.Name = strings.Trim(s.Name, `"'`)
		t.add(s)
		return
	}
	t.end(t.open, line-1)
	s.Kind = Section
	t.table, t.open = s.Name, t.add(s)
}

// lineOf returns the line of an offset in what is parsed, which is not before the last one.
func (t *tomlFile) lineOf(offset int) int {
	offset = max(t.at, t.from+offset)
	t.line += bytes.Count(t.src[t.at:offset], []byte("\n"))
	t.at = offset
	return t.line
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
		b.enter(
			Symbol{Name: name, Container: b.inside().name, Kind: Key, Start: l.line, Doc: note.above(l.line)}, indent,
		)
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
