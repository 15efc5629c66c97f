package outline

// classifyJava understands statements of Java.
func classifyJava(p *braceReader, head []lexeme, open bool) declared {
	top := p.top()
	if top.kind == inCode {
		return declared{opens: inOpaque, goesOn: open}
	}
	list := without(
		javaPlain(head),
		"public",
		"private",
		"protected",
		"static",
		"final",
		"abstract",
		"sealed",
		"strictfp",
		"default",
		"synchronized",
		"native",
		"transient",
		"volatile",
	)
	if len(list) == 0 {
		return declared{opens: inOpaque}
	}
	words := map[string]Kind{"class": Class, "interface": Interface, "enum": Enum, "record": Class}
	for i := 0; i < min(len(list), 3); i++ {
		kind, ok := words[list[i].text]
		name, named := wordAt(list, i+1)
		if ok && named && open && !has(list[:i], '(') {
			return one(symbol(head, name, kind, top.name), inType, name.text)
		}
	}
	group, equals := indexKind(list, '('), indexKind(list, '=')
	switch {
	case equals >= 0 && (group < 0 || equals < group):
		name, ok := wordAt(list, equals-1)
		if ok && !open && top.kind == inType && upper(name.text) {
			return declared{symbols: []Symbol{symbol(head, name, Constant, top.name)}}
		}
		return declared{opens: inOpaque, goesOn: open}
	case top.kind == inType && group > 0:
		name, ok := wordAt(list, group-1)
		constructor := group == 1 && name.text == top.name
		if ok && (group > 1 || constructor) && !has(list[:group], ',') && !has(list[:group], '.') || constructor {
			return one(symbol(head, name, Method, top.name), inOpaque, "")
		}
		if ok && group > 1 && !has(list[:group], ',') {
			return one(symbol(head, name, Method, top.name), inOpaque, "")
		}
	case top.kind == inType && open && group == 0:
		return declared{opens: inOpaque}
	}
	// The body of an enum constant is followed by more of them.
	return declared{opens: inOpaque, goesOn: open && top.kind == inType && has(list, ',')}
}

// javaPlain returns a statement without annotations and type parameters.
func javaPlain(head []lexeme) []lexeme {
	list := unannotated(plain(head))
	out := list[:0:0]
	for len(list) > 0 { // annotations between modifiers
		if list[0].kind == '@' {
			rest := unannotated(list)
			if len(rest) < len(list) {
				list = rest
				continue
			}
		}
		if list[0].kind != '<' {
			out = append(out, list[0])
		}
		list = list[1:]
	}
	return out
}
