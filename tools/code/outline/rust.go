package outline

// classifyRust understands statements of Rust.
func classifyRust(p *braceReader, head []lexeme, open bool) declared {
	top := p.top()
	list := rustPlain(head)
	if len(list) == 0 {
		return declared{opens: inOpaque}
	}
	if top.kind == inCode {
		return declared{opens: inOpaque, goesOn: open}
	}
	container := top.name
	kind := Function
	if top.kind == inType {
		kind = Method
	}
	list = without(list, "pub", "(", "default", "async", "unsafe", "extern")
	for len(list) > 0 && (list[0].kind == '(' || list[0].kind == tokString) {
		list = without(list[1:], "default", "async", "unsafe", "extern")
	}
	if i := find(list, "fn"); i == 0 || i == 1 && list[0].text == "const" {
		list = list[i:]
	}
	name, ok := wordAt(list, 1)
	if !ok && list0(list) != "impl" && list0(list) != "macro_rules" {
		return declared{opens: inOpaque, goesOn: open && has(list, '=')}
	}
	switch list0(list) {
	case "fn":
		return one(symbol(head, name, kind, container), inOpaque, "")
	case "struct", "union":
		return one(symbol(head, name, Struct, container), inOpaque, "")
	case "enum":
		return one(symbol(head, name, Enum, container), inOpaque, "")
	case "trait":
		return one(symbol(head, name, Trait, container), inType, name.text)
	case "mod":
		if !open {
			return declared{}
		}
		return one(symbol(head, name, Module, container), inFile, name.text)
	case "impl":
		return declared{opens: inType, name: rustImplemented(list)}
	case "macro_rules":
		if name, ok = wordAt(list, 2); ok {
			return one(symbol(head, name, Macro, container), inOpaque, "")
		}
	case "type":
		return declared{symbols: []Symbol{symbol(head, name, Type, container)}}
	case "const", "static":
		return rustConstant(head, list, container, open)
	}
	return declared{opens: inOpaque, goesOn: open && has(list, '=')}
}

// rustConstant understands const NAME: and static mut NAME:, whose value may have braces.
func rustConstant(head, list []lexeme, container string, open bool) declared {
	d := declared{opens: inOpaque, goesOn: open}
	list = without(list[1:], "mut")
	if name, ok := wordAt(list, 0); ok && !open {
		d.symbols = []Symbol{symbol(head, name, Constant, container)}
	}
	return d
}

func list0(list []lexeme) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].text
}

// rustPlain returns a statement without attributes and type parameters.
func rustPlain(head []lexeme) []lexeme {
	list := plain(head)
	for len(list) > 1 && list[0].kind == '#' {
		list = list[1:]
		if list[0].kind == '!' {
			list = list[1:]
		}
		if len(list) > 0 && list[0].kind == '[' {
			list = list[1:]
		}
	}
	return list
}

// rustImplemented returns the name of the type of an impl: the last one of its path, after "for" if there is one.
func rustImplemented(list []lexeme) string {
	if i := find(list, "for"); i > 0 {
		list = list[i:]
	}
	name := ""
	for _, t := range list[1:] {
		if t.text == "where" {
			break
		}
		if t.kind == tokWord && t.text != "dyn" && t.text != "mut" {
			name = t.text
		}
	}
	return name
}
