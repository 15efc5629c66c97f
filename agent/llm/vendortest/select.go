package vendortest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// place is a value of a request and where it is: what a rule is about, and what a refusal names.
type place struct {
	value  any
	path   string // as vendors write it: tools[2].function.parameters
	inside string // within the schema of a tool: properties.a
	tool   int    // index of the tool that it belongs to; -1 = none
	index  int    // index of the message or item that it belongs to; -1 = none
	call   int    // index of the call within its message; -1 = none
	key    string // what a condition found: the key or name that it is about
}

// step is one step of a selector.
type step struct {
	field string // "*" = every field
	index string // "*" = every element, else a number, negative from the end; "" = this is a field
	deep  bool   // every schema within a schema, itself included
}

// maxPlaces bounds what a selector finds in one request.
const maxPlaces = 100_000

// parseSelector reads a selector such as tools[*].function.parameters.** or messages[-1].role.
func parseSelector(text string) ([]step, error) {
	var steps []step
	for part := range strings.SplitSeq(text, ".") {
		switch {
		case text == "":
			return nil, nil
		case part == "**":
			steps = append(steps, step{deep: true})
			continue
		}
		field, rest, _ := strings.Cut(part, "[")
		if field != "" {
			steps = append(steps, step{field: field})
		}
		for rest != "" {
			index, after, closed := strings.Cut(rest, "]")
			if _, err := strconv.Atoi(index); !closed || (err != nil && index != "*") {
				return nil, fmt.Errorf("selector %q: %q is no index", text, rest)
			}
			steps = append(steps, step{index: index})
			rest = strings.TrimPrefix(after, "[")
		}
	}
	return steps, nil
}

// find returns the places of a request that a selector names, in the order of the
// request; fields in alphabetical order.
func find(request any, steps []step) []place {
	list := []place{{value: request, tool: -1, index: -1, call: -1}}
	for _, s := range steps {
		var next []place
		for _, p := range list {
			next = append(next, p.step(s)...)
			if len(next) > maxPlaces {
				return next[:maxPlaces]
			}
		}
		list = next
	}
	return list
}

func (p place) step(s step) []place {
	switch {
	case s.deep:
		return p.schemas(0)
	case s.index != "":
		return p.elements(s.index)
	}
	object, ok := p.value.(map[string]any)
	if !ok {
		return nil
	}
	var out []place
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name == s.field || s.field == "*" {
			out = append(out, p.field(name))
		}
	}
	return out
}

// field is a field of an object, which must exist.
func (p place) field(name string) place {
	object, _ := p.value.(map[string]any)
	p.value = object[name]
	p.path = strings.TrimPrefix(p.path+"."+name, ".")
	if p.inSchema() {
		p.inside = strings.TrimPrefix(p.inside+"."+name, ".")
	}
	return p
}

// inSchema reports whether the fields of a place belong to the schema of a tool.
func (p place) inSchema() bool {
	for _, name := range []string{".parameters.", ".input_schema."} {
		if strings.Contains(p.path, name) && p.tool >= 0 {
			return true
		}
	}
	return false
}

func (p place) elements(index string) []place {
	list, ok := p.value.([]any)
	if !ok {
		return nil
	}
	if index != "*" {
		n, err := strconv.Atoi(index)
		if n < 0 {
			n += len(list)
		}
		if err != nil || n < 0 || n >= len(list) {
			return nil
		}
		return []place{p.element(list, n)}
	}
	out := make([]place, len(list))
	for n := range list {
		out[n] = p.element(list, n)
	}
	return out
}

func (p place) element(list []any, n int) place {
	switch {
	case p.path == "tools":
		p.tool = n
	case p.path == "messages" || p.path == "input":
		p.index = n
	case strings.HasSuffix(p.path, ".tool_calls"):
		p.call = n
	}
	p.value, p.path = list[n], fmt.Sprintf("%s[%d]", p.path, n)
	if p.inside != "" {
		p.inside = fmt.Sprintf("%s.%d", p.inside, n)
	}
	return p
}

// maxSchemaDepth bounds how deep a schema is searched.
const maxSchemaDepth = 64

// schemas returns a schema and all schemas within it. What is under "properties" are schemas by name, so that a
// property called "items" or "const" is not taken for a keyword.
func (p place) schemas(depth int) []place {
	out := []place{p}
	object, ok := p.value.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		child := p.field(name)
		switch name {
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			if named, ok := child.value.(map[string]any); ok {
				for _, key := range slices.Sorted(maps.Keys(named)) {
					out = append(out, child.field(key).schemas(depth+1)...)
				}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, branch := range child.elements("*") {
				out = append(out, branch.schemas(depth+1)...)
			}
		case "items", "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties":
			if _, ok := child.value.(map[string]any); ok {
				out = append(out, child.schemas(depth+1)...)
			}
		}
	}
	return out
}
