package outline

// classifyGo understands statements of Go.
func classifyGo(p *parser, head []token, open bool) declared {
	top := p.top()
	list := outer(head)
	none := declared{opens: inOpaque, goesOn: open}
	if len(list) == 0 {
		return declared{opens: inOpaque}
	}
	switch top.kind {
	case inType:
		if open { // of a type in the signature
			return none
		}
		return goMember(top.name, head, list, none)
	case inGroup:
		return goSpec(top.keyword, head, list, open, none)
	case inFile:
	default:
		return none
	}
	switch list[0].text {
	case "package":
		if name, ok := wordAt(list, 1); ok && p.docs != "" && !open {
			return declared{symbols: []Symbol{symbol(head, name, Module, "")}}
		}
	case "func":
		return goFunc(head, list, open, none)
	case "type", "const", "var":
		return goSpec(list[0].text, head, list[1:], open, none)
	}
	return none
}

// goFunc understands a function or method.
func goFunc(head, list []token, open bool, none declared) declared {
	last := list[len(list)-1]
	if open && (last.text == "struct" || last.text == "interface") { // of a result
		return none
	}
	if name, ok := wordAt(list, 1); ok {
		return one(symbol(head, name, Function, ""), inOpaque, "")
	}
	name, ok := wordAt(list, 2)
	if !ok || list[1].kind != '(' {
		return none
	}
	receiver := ""
	for _, t := range head[1:] {
		if t.kind == ')' && t.depth == 0 {
			break
		}
		if t.kind == tokWord && t.depth == 1 {
			receiver = t.text
		}
	}
	return one(symbol(head, name, Method, receiver), inOpaque, "")
}

// goSpec understands what follows type, const or var.
func goSpec(keyword string, head, list []token, open bool, none declared) declared {
	name, ok := wordAt(list, 0)
	if !ok || name.text == "_" || keyword == "import" {
		return none
	}
	last := list[len(list)-1].text
	switch {
	case keyword == "type" && open && last == "struct" && !has(list, '='):
		return one(symbol(head, name, Struct, ""), inOpaque, name.text)
	case keyword == "type" && open && last == "interface":
		return one(symbol(head, name, Interface, ""), inType, name.text)
	case open:
		return none
	case keyword == "type":
		return declared{symbols: []Symbol{symbol(head, name, Type, "")}}
	}
	kind := Variable
	if keyword == "const" {
		kind = Constant
	}
	var d declared
	for i := 0; i < len(list); i += 2 {
		if name, ok = wordAt(list, i); !ok {
			break
		}
		if name.text != "_" {
			d.symbols = append(d.symbols, symbol(head, name, kind, ""))
		}
		if i+1 >= len(list) || list[i+1].kind != ',' {
			break
		}
	}
	return d
}

// goMember understands a method of an interface.
func goMember(container string, head, list []token, none declared) declared {
	if name, ok := wordAt(list, 0); ok && len(list) > 1 && list[1].kind == '(' && head[0].kind == tokWord {
		d := one(symbol(head, name, Method, container), inOpaque, "")
		d.goesOn = none.goesOn
		return d
	}
	return none
}
