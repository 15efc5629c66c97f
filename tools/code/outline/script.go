package outline

// classifyScript understands statements of JavaScript and TypeScript.
func classifyScript(p *braceReader, head []lexeme, open bool) declared {
	top := p.top()
	list := unannotated(plain(head))
	if len(list) == 0 {
		if top.kind == inObject {
			return declared{opens: inObject, name: top.name, goesOn: open}
		}
		return declared{opens: inCode, name: top.name}
	}
	switch top.kind {
	case inType:
		return scriptMember(top.name, head, list, open)
	case inObject:
		return scriptProperty(top.name, head, list, open)
	}
	list = without(list, "export", "default", "declare", "async", "abstract")
	if d, ok := scriptDeclared(p, head, list, open); ok {
		return d
	}
	if d, ok := scriptAssigned(top, head, list, open); ok {
		return d
	}
	last := lexeme{}
	if len(list) > 0 {
		last = list[len(list)-1]
	}
	expression := last.kind == '=' || last.kind == ':' ||
		last.kind == '(' && !has(list, tokWord) || last.text == "return"
	return declared{opens: inCode, name: top.name, goesOn: expression}
}

// scriptDeclared understands a statement that begins with a keyword.
func scriptDeclared(p *braceReader, head, list []lexeme, open bool) (declared, bool) {
	container := p.top().name
	i := 1
	if list0(list) == "function" && len(list) > 1 && list[1].kind == '*' {
		i = 2
	}
	if list0(list) == "const" && len(list) > 1 && list[1].text == "enum" {
		list = list[1:]
	}
	name, ok := wordAt(list, i)
	if (!ok || name.text == "extends") && len(list) > 0 && find(head, "default") >= 0 &&
		(list[0].text == "function" || list[0].text == "class") {
		name, ok = list[0], true
		name.text = "default"
	}
	if !ok {
		return declared{}, false
	}
	switch list[0].text {
	case "function":
		return one(symbol(head, name, Function, container), inCode, name.text), true
	case "class":
		if !open {
			return declared{}, false
		}
		return one(symbol(head, name, Class, container), inType, name.text), true
	case "interface":
		if open {
			return one(symbol(head, name, Interface, container), inType, name.text), true
		}
	case "enum":
		if open {
			return one(symbol(head, name, Enum, container), inOpaque, ""), true
		}
	case "namespace", "module":
		if open {
			return one(symbol(head, name, Module, container), inFile, name.text), true
		}
	case "type":
		if !has(list, '=') {
			return declared{}, false
		}
		d := declared{opens: inOpaque, goesOn: open}
		if !open {
			d.symbols = []Symbol{symbol(head, name, Type, container)}
		}
		return d, true
	}
	return declared{}, false
}

// scriptAssigned understands const name = …, exports.name = … and Type.prototype.name = ….
func scriptAssigned(top *scope, head, list []lexeme, open bool) (declared, bool) {
	equals := indexKind(list, '=')
	if equals < 1 {
		return declared{}, false
	}
	bound := find(list[:1], "const", "let", "var") == 0
	i := equals - 1
	if bound {
		i = 1
	}
	name, ok := wordAt(list, i)
	if !ok || !bound && (i < 2 || list[i-1].kind != '.') {
		return declared{}, false
	}
	container := top.name
	if !bound && i >= 2 {
		if owner, ok := wordAt(list, i-2); ok && owner.text != "exports" &&
			owner.text != "module" && owner.text != "this" {
			container = owner.text
			if before, ok := wordAt(list, i-4); ok && owner.text == "prototype" {
				container = before.text
			}
		}
	}
	value := list[equals+1:]
	switch {
	case isFunction(value, open):
		kind := Function
		if container != top.name {
			kind = Method
		}
		d := one(symbol(head, name, kind, container), inCode, name.text)
		d.goesOn = false
		return d, true
	case open && find(value, "class") == 0:
		return one(symbol(head, name, Class, top.name), inType, name.text), true
	case open && len(value) == 0:
		d := declared{opens: inObject, name: name.text, goesOn: true}
		if name.text == "exports" {
			d.name = ""
		}
		return d, true
	case !open && top.kind == inFile && bound:
		kind := Variable
		if list[0].text == "const" {
			kind = Constant
		}
		if name.text == "require" || find(value, "require") == 0 {
			return declared{}, true
		}
		return declared{symbols: []Symbol{symbol(head, name, kind, "")}}, true
	}
	return declared{opens: inCode, name: top.name, goesOn: open}, true
}

// isFunction reports whether a value is a function.
func isFunction(value []lexeme, open bool) bool {
	value = without(value, "async")
	if find(value, "function") == 0 {
		return true
	}
	arrow := indexKind(value, tokArrow)
	if arrow < 0 || arrow > 12 {
		return false
	}
	return !open || arrow == len(value)-1
}

// scriptMember understands a member of a class or an interface.
func scriptMember(container string, head, list []lexeme, open bool) declared {
	list = without(
		list,
		"public",
		"private",
		"protected",
		"static",
		"readonly",
		"abstract",
		"override",
		"async",
		"declare",
		"accessor",
	)
	if len(list) > 1 && (list[0].text == "get" || list[0].text == "set") && list[1].kind != '(' {
		list = list[1:]
	}
	for len(list) > 0 && (list[0].kind == '*' || list[0].kind == '#') {
		list = list[1:]
	}
	name, ok := wordAt(list, 0)
	if !ok {
		return declared{opens: inOpaque, goesOn: open}
	}
	i := 1
	if len(list) > 1 && list[1].kind == '?' {
		i = 2
	}
	if len(list) > i && list[i].kind == '(' {
		return one(symbol(head, name, Method, container), inCode, name.text)
	}
	if equals := indexKind(list, '='); equals > 0 && isFunction(list[equals+1:], open) {
		return one(symbol(head, name, Method, container), inCode, name.text)
	}
	return declared{opens: inOpaque, goesOn: open && list[len(list)-1].text != "static"}
}

// scriptProperty understands a property of an object literal: only functions count.
func scriptProperty(container string, head, list []lexeme, open bool) declared {
	list = without(list, "async")
	if len(list) > 1 && (list[0].text == "get" || list[0].text == "set") && list[1].kind == tokWord {
		list = list[1:]
	}
	name, ok := wordAt(list, 0)
	if !ok || len(list) < 2 {
		return declared{opens: inCode, name: container, goesOn: open}
	}
	switch {
	case !open && has(list, tokBlock): // it was understood at its braces
		return declared{}
	case open && list[1].kind == '(' && list[len(list)-1].kind != ':':
		d := one(symbol(head, name, Method, container), inCode, name.text)
		d.goesOn = true
		return d
	case list[1].kind == ':' && isFunction(list[2:], open):
		d := one(symbol(head, name, Method, container), inCode, name.text)
		d.goesOn = open
		return d
	case open && list[1].kind == ':' && len(list) == 2:
		return declared{opens: inObject, name: name.text, goesOn: true}
	}
	return declared{opens: inCode, name: container, goesOn: open}
}
