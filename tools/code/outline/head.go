package outline

import "slices"

// outer returns the tokens of a statement outside of brackets; a pair of brackets is its opening one. Attributes and
// annotations are left out.
func outer(head []lexeme) []lexeme {
	out := make([]lexeme, 0, min(len(head), 24))
	for _, t := range head {
		if t.depth == 0 && t.kind != ')' && t.kind != ']' {
			out = append(out, t)
		}
	}
	return out
}

// plain returns outer without type parameters.
func plain(head []lexeme) []lexeme {
	list := outer(head)
	out := list[:0:0]
	depth := 0
	for i, t := range list {
		switch {
		case t.kind == '<' && i > 0 && (list[i-1].kind == tokWord || list[i-1].kind == tokColons || depth > 0):
			depth++
			continue
		case t.kind == '>' && depth > 0:
			depth--
			continue
		}
		if depth == 0 {
			out = append(out, t)
		}
	}
	return out
}

// find returns the index of the first of some words; -1 = there is none.
func find(list []lexeme, words ...string) int {
	for i, t := range list {
		if t.kind == tokWord && slices.Contains(words, t.text) {
			return i
		}
	}
	return -1
}

// has reports whether a token of a kind is in the list.
func has(list []lexeme, kind tokenKind) bool { return indexKind(list, kind) >= 0 }

func indexKind(list []lexeme, kind tokenKind) int {
	for i, t := range list {
		if t.kind == kind {
			return i
		}
	}
	return -1
}

// wordAt returns the word at i, and whether there is one.
func wordAt(list []lexeme, i int) (lexeme, bool) {
	if i < 0 || i >= len(list) || list[i].kind != tokWord {
		return lexeme{}, false
	}
	return list[i], true
}

// symbol returns a symbol of a statement with a name token.
func symbol(head []lexeme, name lexeme, kind Kind, container string) Symbol {
	start := name.line
	if len(head) > 0 {
		start = head[0].line
	}
	return Symbol{Name: name.text, Kind: kind, Container: container, Start: start, Line: name.line}
}

// one returns a declaration with one symbol.
func one(s Symbol, opens scopeKind, name string) declared {
	return declared{symbols: []Symbol{s}, opens: opens, name: name}
}

// upper reports whether a name is written like a constant.
func upper(name string) bool {
	letters := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			letters++
		case c >= 'a' && c <= 'z', c >= 0x80:
			return false
		}
	}
	return letters > 1
}

// unannotated removes @Annotation and @Annotation(…) at the beginning of a statement, which is as outer returns it.
func unannotated(list []lexeme) []lexeme {
	for len(list) > 1 && list[0].kind == '@' && list[1].kind == tokWord && list[1].text != "interface" {
		list = list[2:]
		for len(list) > 1 && list[0].kind == '.' && list[1].kind == tokWord {
			list = list[2:]
		}
		if len(list) > 0 && list[0].kind == '(' {
			list = list[1:]
		}
	}
	return list
}

// without removes leading words.
func without(list []lexeme, words ...string) []lexeme {
	for len(list) > 0 && find(list[:1], words...) == 0 {
		list = list[1:]
	}
	return list
}
