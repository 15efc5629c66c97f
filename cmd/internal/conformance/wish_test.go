package conformance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// offered is a tool as the model sees it, by the server's own name.
type offered struct {
	name   string
	schema json.RawMessage
}

// wish is a call that the scripted model makes.
type wish struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// wishes are the calls of a scenario: those that its context gives, or else each tool once with arguments that its
// schema admits.
func wishes(tools []offered, context string) ([]wish, error) {
	var given struct {
		Calls []wish `json:"toolCalls"`
	}
	if context != "" {
		if err := json.Unmarshal([]byte(context), &given); err != nil {
			return nil, fmt.Errorf("read the scenario's context: %w", err)
		}
	}
	if len(given.Calls) > 0 {
		return given.Calls, nil
	}
	var list []wish
	for i, t := range tools {
		var root map[string]any
		if err := json.Unmarshal(t.schema, &root); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.name, err)
		}
		args, ok := example(root, root, 0).(map[string]any)
		if !ok {
			args = map[string]any{}
		}
		// the referee wants to see a tool's schema as the model sees it
		if _, wanted := args["schema"]; wanted && len(tools) > 1 {
			args["schema"] = tools[(i+1)%len(tools)].schema
		}
		data, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		list = append(list, wish{Name: t.name, Arguments: data})
	}
	return list, nil
}

// example makes a value for a schema: its constant, its first option, its default, or the plainest one of its type with
// what is required.
func example(schema, root map[string]any, depth int) any {
	if depth > 20 {
		return nil
	}
	if ref, ok := schema["$ref"].(string); ok {
		if target := follow(ref, root); target != nil {
			return example(target, root, depth+1)
		}
	}
	if v, ok := schema["const"]; ok {
		return v
	}
	if list, ok := schema["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	if v, ok := schema["default"]; ok {
		return v
	}
	switch typeOf(schema) {
	case "string":
		return strings.Repeat("x", max(1, int(number(schema, "minLength", 1))))
	case "integer", "number":
		return number(schema, "minimum", 1)
	case "boolean":
		return true
	case "array":
		list := []any{}
		item, _ := schema["items"].(map[string]any)
		for range int(number(schema, "minItems", 0)) {
			list = append(list, example(item, root, depth+1))
		}
		return list
	case "null":
		return nil
	default:
		return object(schema, root, depth)
	}
}

func object(schema, root map[string]any, depth int) map[string]any {
	out := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		key, _ := name.(string)
		property, _ := properties[key].(map[string]any)
		out[key] = example(property, root, depth+1)
	}
	return out
}

// follow finds what a reference into the same schema means: a pointer, or an anchor among the definitions.
func follow(ref string, root map[string]any) map[string]any {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if !strings.HasPrefix(rest, "/") {
		defs, _ := root["$defs"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(defs)) {
			if def, ok := defs[key].(map[string]any); ok && def["$anchor"] == rest {
				return def
			}
		}
		return nil
	}
	at := root
	for part := range strings.SplitSeq(rest[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next, ok := at[part].(map[string]any)
		if !ok {
			return nil
		}
		at = next
	}
	return at
}

func typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return t
	case []any:
		for _, each := range t {
			if s, ok := each.(string); ok && s != "null" {
				return s
			}
		}
	}
	return ""
}

func number(schema map[string]any, key string, normal float64) float64 {
	if n, ok := schema[key].(float64); ok {
		return n
	}
	return normal
}

func TestWishes(t *testing.T) {
	t.Parallel()
	tool := func(name, schema string) offered { return offered{name: name, schema: json.RawMessage(schema)} }
	for name, tc := range map[string]struct {
		tools   []offered
		context string
		want    []string
	}{
		"numbers":    {tools: []offered{tool("add", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"integer","minimum":5},"c":{"type":"string"}},"required":["a","b"]}`)}, want: []string{`add {"a":1,"b":5}`}},
		"values":     {tools: []offered{tool("t", `{"type":"object","properties":{"s":{"type":["null","string"]},"e":{"enum":["x","y"]},"k":{"const":7},"d":{"type":"string","default":"z"},"l":{"type":"array","minItems":1,"items":{"type":"boolean"}}},"required":["s","e","k","d","l"]}`)}, want: []string{`t {"d":"z","e":"x","k":7,"l":[true],"s":"x"}`}},
		"references": {tools: []offered{tool("t", `{"$defs":{"p":{"$anchor":"here","type":"string","minLength":3}},"properties":{"a":{"$ref":"#/$defs/p"},"b":{"$ref":"#here"},"c":{"$ref":"https://x.example/s"}},"required":["a","b","c"]}`)}, want: []string{`t {"a":"xxx","b":"xxx","c":{}}`}},
		"a loop":     {tools: []offered{tool("t", `{"$ref":"#/properties/t","properties":{"t":{"$ref":"#/properties/t"}}}`)}, want: []string{`t {}`}},
		"an echo of the other's schema": {
			tools: []offered{tool("focal", `{"type":"object","$id":"x"}`), tool("echo", `{"type":"object","properties":{"schema":{"type":"object"}},"required":["schema"]}`)},
			want:  []string{`focal {}`, `echo {"schema":{"type":"object","$id":"x"}}`},
		},
		"given":   {tools: []offered{tool("other", `{}`)}, context: `{"name":"s","toolCalls":[{"name":"t","arguments":{"v":null}}]}`, want: []string{`t {"v":null}`}},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := wishes(tc.tools, tc.context)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range list {
				got = append(got, w.Name+" "+string(w.Arguments))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
