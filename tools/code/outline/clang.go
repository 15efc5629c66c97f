package outline

// classifyC understands statements of C and C++.
func classifyC(p *braceReader, head []lexeme, open bool) declared {
	top := p.top()
	if top.kind == inCode {
		return declared{opens: inOpaque, goesOn: open}
	}
	list := cPlain(head)
	if len(list) == 0 {
		return declared{opens: inOpaque}
	}
	if p.lang == CPP && top.kind == inType && len(list) > 1 && list[1].kind == ':' { // public:
		switch list[0].text {
		case "public", "private", "protected":
			list, head = list[2:], head[2:]
		}
	}
	switch {
	case list0(list) == "typedef":
		return cTypedef(head, list, open)
	case list0(list) == "using" && !open:
		if name, ok := wordAt(list, 1); ok && has(list, '=') {
			return declared{symbols: []Symbol{symbol(head, name, Type, top.name)}}
		}
		return declared{}
	case open && list0(list) == "extern" && len(list) == 2 && list[1].kind == tokString:
		return declared{opens: inFile, name: top.name}
	case open &&
		(list0(list) == "namespace" || list0(list) == "inline" && len(list) > 1 && list[1].text == "namespace"):
		return cNamespace(top.name, head, list)
	}
	if d, ok := cType(top.name, head, list, open); ok {
		return d
	}
	if d, ok := cFunction(top, head, list); ok {
		return d
	}
	return cVariable(top, head, list, open)
}

// cPlain returns a statement without template parameters and attributes.
func cPlain(head []lexeme) []lexeme {
	list := plain(head)
	out := list[:0:0]
	for i := 0; i < len(list); i++ {
		switch t := list[i]; {
		case t.text == "template" || t.text == "static" ||
			t.text == "inline" && i+1 < len(list) && list[i+1].text != "namespace":
		case i+1 < len(list) && list[i+1].kind == '(' &&
			(t.text == "__attribute__" || t.text == "__declspec" || t.text == "alignas" ||
				t.text == "noexcept" || t.text == "decltype" ||
				t.text == "explicit" || t.text == "requires" || t.text == "throw"):
			i++
		case t.kind == '[' && (i == 0 || list[i-1].kind != tokWord): // [[attribute]]
		default:
			out = append(out, t)
		}
	}
	return out
}

func cTypedef(head, list []lexeme, open bool) declared {
	if open { // the name follows the braces; a tag before them is a name too
		d := declared{opens: inOpaque, goesOn: true}
		if name, ok := wordAt(list, 2); ok {
			d.symbols = []Symbol{symbol(head, name, Struct, "")}
		}
		return d
	}
	if n := len(list); n > 2 && list[n-1].kind == '(' && list[n-2].kind == '(' { // a pointer to a function
		for _, t := range head {
			if t.kind == tokWord && t.depth == 1 {
				return declared{symbols: []Symbol{symbol(head, t, Type, "")}}
			}
		}
	}
	end := len(list) - 1
	for end > 1 && list[end].kind != tokWord {
		end--
	}
	if name, ok := wordAt(list, end); ok && end > 0 {
		return declared{symbols: []Symbol{symbol(head, name, Type, "")}}
	}
	return declared{}
}

func cNamespace(outside string, head, list []lexeme) declared {
	name := lexeme{}
	for _, t := range list[1:] {
		if t.kind == tokWord && t.text != "namespace" {
			name = t
		}
	}
	if name.text == "" {
		return declared{opens: inFile, name: outside}
	}
	return one(symbol(head, name, Module, outside), inFile, name.text)
}

// cType understands a class, struct, union or enum with braces.
func cType(container string, head, list []lexeme, open bool) (declared, bool) {
	i := find(list, "class", "struct", "union", "enum")
	if !open || i < 0 || has(list, '(') || has(list[:i], '=') {
		return declared{}, false
	}
	kind, opens := Struct, inType
	switch list[i].text {
	case "class":
		kind = Class
	case "enum":
		kind, opens = Enum, inOpaque
	}
	name := lexeme{}
	for _, t := range list[i+1:] {
		if t.kind == ':' || t.kind == '=' {
			break
		}
		if t.kind == tokWord && t.text != "final" && t.text != "class" && t.text != "struct" {
			name = t
		}
	}
	if name.text == "" {
		return declared{opens: inOpaque, goesOn: true}, true
	}
	return one(symbol(head, name, kind, container), opens, name.text), true
}

// cFunction understands a definition with braces, or a declaration.
func cFunction(top *scope, head, list []lexeme) (declared, bool) {
	group := indexKind(list, '(')
	if i := find(list, "operator"); i >= 0 && i < group {
		name := list[i]
		for _, t := range list[i+1 : group] {
			name.text += t.text
		}
		return one(symbol(head, name, Method, cQualifier(list, i, top.name)), inOpaque, ""), true
	}
	name, ok := wordAt(list, group-1)
	if equals := indexKind(list, '='); !ok || equals >= 0 && equals < group {
		return declared{}, false
	}
	switch name.text {
	case "if", "for", "while", "switch", "return", "sizeof", "catch", "do",
		"else", "defined", "static_assert", "_Static_assert", "asm", "__asm__":
		return declared{opens: inOpaque}, true
	}
	container := cQualifier(list, group-1, top.name)
	special := name.text == container
	start := group - 1
	if start > 0 && list[start-1].kind == '~' {
		name.text, special, start = "~"+name.text, true, start-1
	}
	if start == 0 && !special { // a call, or a macro
		return declared{opens: inOpaque}, true
	}
	kind := Function
	if top.kind == inType || container != top.name {
		kind = Method
	}
	return one(symbol(head, name, kind, container), inOpaque, ""), true
}

// cQualifier returns the class that qualifies the name at i: Class in Class::name.
func cQualifier(list []lexeme, i int, otherwise string) string {
	if i > 0 && list[i-1].kind == '~' {
		i--
	}
	if t, ok := wordAt(list, i-2); ok && list[i-1].kind == tokColons {
		return t.text
	}
	return otherwise
}

// cVariable understands constants and initialised variables.
func cVariable(top *scope, head, list []lexeme, open bool) declared {
	none := declared{opens: inOpaque, goesOn: open}
	equals := indexKind(list, '=')
	if open || equals < 2 || top.kind == inType && find(list[:equals], "const", "constexpr") < 0 {
		return none
	}
	i := equals - 1
	for i > 0 && list[i].kind != tokWord {
		i--
	}
	name, ok := wordAt(list, i)
	if !ok {
		return none
	}
	kind := Variable
	if find(list[:equals], "const", "constexpr") >= 0 {
		kind = Constant
	}
	return declared{symbols: []Symbol{symbol(head, name, kind, top.name)}}
}
