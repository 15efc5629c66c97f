package outline

import "strings"

// ruby lists classes, modules, methods and constants. What a declaration contains is indented below it, as everybody
// writes Ruby.
func ruby(src []byte, out *builder) {
	l := lines{src: string(src)}
	b := blocks{out: out}
	var note hashNote
	until := "" // the word that ends a here document or a comment
	for {
		text, ok := l.next()
		if !ok {
			break
		}
		indent, rest := indentOf(text)
		switch {
		case until != "":
			if rest == until {
				until = ""
			}
			continue
		case rest == "":
			continue
		case rest == "=begin":
			until = "=end"
			continue
		case rest == "__END__":
			b.leave(0)
			return
		case rest[0] == '#':
			note.add(rest, l.line)
			continue
		}
		if word, _ := leadingWord(rest); word == "end" {
			b.seen = l.line
		}
		b.leave(indent)
		b.seen = l.line
		rubyStatement(&b, indent, rest, note.above(l.line))
		until = hereWord(rest)
	}
	b.leave(0)
}

// rubyStatement handles a line that is code.
func rubyStatement(b *blocks, indent int, rest, doc string) {
	word, after := leadingWord(rest)
	switch word {
	case "private", "protected", "public", "module_function", "private_class_method":
		word, after = leadingWord(after)
	}
	in := b.inside()
	s := Symbol{Container: in.name, Start: b.seen, Line: b.seen, Doc: doc}
	switch word {
	case "class", "module":
		s.Kind = Class
		if word == "module" {
			s.Kind = Module
		}
		name, _, _ := strings.Cut(after, " ")
		name, _, _ = strings.Cut(name, "<")
		name, _, _ = strings.Cut(name, ";")
		if i := strings.LastIndex(name, "::"); i >= 0 {
			name = name[i+2:]
		}
		if s.Name, _ = leadingWord(name); s.Name == "" { // class << self
			return
		}
	case "def":
		s.Kind = Function
		if in.kind == Class || in.kind == Module {
			s.Kind = Method
		}
		s.Name = rubyMethod(after)
	default:
		if value := strings.TrimLeft(rest[len(word):], " "); word != "" && word[0] >= 'A' && word[0] <= 'Z' &&
			strings.HasPrefix(value, "=") && !strings.HasPrefix(value, "==") && !strings.HasPrefix(value, "=~") {
			s.Name, s.Kind = word, Constant
			b.out.add(s)
		}
		return
	}
	b.enter(s, indent)
}

// rubyMethod returns the name of a method: without self, with ? or !.
func rubyMethod(s string) string {
	s = strings.TrimPrefix(s, "self.")
	name, _ := leadingWord(s)
	if n := len(name); n > 0 && n < len(s) && (s[n] == '?' || s[n] == '!' || s[n] == '=') {
		name = s[:n+1]
	}
	if name == "" { // an operator
		name, _, _ = strings.Cut(s, "(")
		name, _, _ = strings.Cut(name, " ")
	}
	return name
}

// hereWord returns the word that ends a here document that begins in a line; "" = none begins.
func hereWord(s string) string {
	_, after, ok := strings.Cut(s, "<<")
	if !ok || after == "" {
		return ""
	}
	after = strings.TrimLeft(after, "~-")
	quoted := strings.TrimLeft(after, `"'`)
	word, _ := leadingWord(quoted)
	if word == "" || !upper(word) && quoted == after {
		return ""
	}
	return word
}
