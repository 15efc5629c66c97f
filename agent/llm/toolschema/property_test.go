package toolschema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
	"github.com/zephbot/zephbot/agent/llm/toolschema/schematest"
	"github.com/zephbot/zephbot/tools/schema"
)

// world makes schemas and values by chance.
type world struct {
	*rand.Rand
	plain bool // one type for everything, and no words are needed for types
	defs  int
}

func (w *world) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *world) names() []string {
	list := []string{"a", "b", "c", "d"}[:1+w.IntN(4)]
	if w.IntN(4) == 0 {
		list = append(slices.Clone(list), w.pick("filter[x]", "filter_x_", "$top", "é", "", strings.Repeat("long", 20)))
	}
	return list
}

// schema makes a schema.
func (w *world) schema(level int) any {
	if !w.plain {
		switch w.IntN(24) {
		case 0:
			return true
		case 1:
			return map[string]any{"description": "Anything."}
		case 2:
			return map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", w.IntN(w.defs))}
		case 3:
			return w.combined("anyOf", level)
		case 4:
			return w.combined("oneOf", level)
		case 5:
			return map[string]any{"type": []any{w.pick("string", "integer"), w.pick("null", "boolean")}}
		case 6:
			return map[string]any{"enum": []any{"a", 1, nil, true, 2.5, []any{}}[w.IntN(5):]}
		case 7:
			if s, ok := w.schema(level + 1).(map[string]any); ok && s != nil {
				s["not"] = map[string]any{"type": w.pick("null", "string")}
				return s
			}
			return false
		}
	}
	if w.IntN(14) == 0 {
		return w.combined("allOf", level)
	}
	s := map[string]any{"description": "Text."}
	if w.IntN(2) == 0 {
		delete(s, "description")
	}
	kinds := []string{"string", "integer", "number", "boolean", "object", "array"}
	if level > 3 {
		kinds = kinds[:4]
	}
	s["type"] = w.pick(kinds...)
	w.fill(s, level)
	return s
}

func (w *world) fill(s map[string]any, level int) {
	maybe := func(f func()) {
		if w.IntN(3) == 0 {
			f()
		}
	}
	switch s["type"] {
	case "string":
		maybe(func() { s["minLength"] = w.IntN(3) })
		maybe(func() { s["maxLength"] = 2 + w.IntN(3) })
		maybe(func() { s["pattern"] = w.pick("^[ab]", "b$", `\d`) })
		maybe(func() { s["enum"] = []any{"a", "ab", "b1"}[w.IntN(3):] })
		maybe(func() { s["const"] = w.pick("a", "ab") })
		w.nullable(s)
	case "integer", "number":
		maybe(func() { s["minimum"] = w.IntN(3) - 1 })
		maybe(func() { s["maximum"] = w.IntN(3) + 1 })
		maybe(func() { s["exclusiveMinimum"] = w.IntN(3) - 2 })
		maybe(func() { s["multipleOf"] = w.IntN(2) + 1 })
		maybe(func() { s["enum"] = []any{1, 2, 3}[w.IntN(3):] })
		w.nullable(s)
	case "array":
		s["items"] = w.schema(level + 1)
		maybe(func() { s["minItems"] = w.IntN(2) })
		maybe(func() { s["maxItems"] = 1 + w.IntN(2) })
		maybe(func() { s["uniqueItems"] = true })
		if !w.plain {
			maybe(func() { delete(s, "items") })
			maybe(func() { s["prefixItems"] = []any{w.schema(level + 1), w.schema(level + 1)} })
		}
	case "object":
		w.object(s, level)
	}
}

// nullable makes a schema take null, as OpenAPI does.
func (w *world) nullable(s map[string]any) {
	if !w.plain && w.IntN(6) == 0 {
		s["nullable"] = true
	}
}

func (w *world) object(s map[string]any, level int) {
	properties := map[string]any{}
	for _, name := range w.names() {
		properties[name] = w.schema(level + 1)
	}
	s["properties"] = properties
	if w.IntN(2) == 0 {
		s["required"] = []any{w.pick("a", "b")}
		if w.plain {
			s["required"] = []any{"a"}
		}
	}
	if w.plain {
		switch w.IntN(4) {
		case 0:
			s["additionalProperties"] = false
		case 1:
			s["additionalProperties"] = w.schema(level + 1)
		}
		return
	}
	// A choice between objects that take any property is written as one object with the properties of all, although each of
	// them would take anything under the names of the others.
	s["additionalProperties"] = false
	if w.IntN(4) == 0 {
		s["additionalProperties"] = map[string]any{"type": w.pick("string", "boolean")}
	}
	switch w.IntN(12) {
	case 0:
		s["anyOf"] = []any{map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b", "c"}}}
	case 1:
		s["minProperties"] = 1
	case 2:
		s["dependentRequired"] = map[string]any{"a": []any{"b"}}
	case 3:
		s["patternProperties"] = map[string]any{"^x": w.schema(level + 1)}
	case 4:
		s["propertyNames"] = map[string]any{"maxLength": 1}
	case 5:
		s["if"], s["then"] = map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}
	}
}

func (w *world) combined(keyword string, level int) map[string]any {
	list := []any{w.schema(level + 1), w.schema(level + 1)}
	if level == 0 || w.plain {
		for i := range list {
			s := map[string]any{"type": "object"}
			w.object(s, level+1)
			list[i] = s
		}
	}
	return map[string]any{keyword: list}
}

// tool makes the schema of a tool.
func (w *world) tool() map[string]any {
	var s map[string]any
	switch w.IntN(8) {
	case 0:
		s = w.combined(w.pick("anyOf", "oneOf", "allOf"), 0)
		if w.plain {
			s = w.combined("allOf", 0)
		}
	default:
		s = map[string]any{"type": "object"}
		w.object(s, 0)
	}
	if !w.plain {
		defs := map[string]any{}
		for i := range w.defs {
			defs[fmt.Sprintf("d%d", i)] = w.schema(2)
		}
		s["$defs"] = defs
	}
	return s
}

// value makes a value, by chance one that a schema describes.
func (w *world) value(s any, root map[string]any, level int) any {
	m, _ := s.(map[string]any)
	if level > 8 || m == nil || w.IntN(25) == 0 {
		return []any{"a", "ab", "b1", 1, 2, 0, 1.5, true, nil, []any{}, map[string]any{}, []any{"a"}, map[string]any{"a": 1}}[w.IntN(13)]
	}
	if ref, ok := m["$ref"].(string); ok {
		defs, _ := root["$defs"].(map[string]any)
		return w.value(defs[strings.TrimPrefix(ref, "#/$defs/")], root, level+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		list, ok := m[keyword].([]any)
		if !ok || m["type"] != nil {
			continue
		}
		v := w.value(list[w.IntN(len(list))], root, level+1)
		if other, ok := v.(map[string]any); ok && keyword == "allOf" {
			for _, sub := range list {
				if more, ok := w.value(sub, root, level+1).(map[string]any); ok {
					maps.Copy(other, more)
				}
			}
		}
		return v
	}
	if e, ok := m["enum"].([]any); ok && w.IntN(8) > 0 {
		return e[w.IntN(len(e))]
	}
	t := m["type"]
	if m["nullable"] == true && w.IntN(4) == 0 {
		return nil
	}
	if list, ok := t.([]any); ok {
		t = list[w.IntN(len(list))]
	}
	switch t {
	case "string":
		return w.pick("a", "ab", "b1", "b", "a1b", "")
	case "integer":
		return w.IntN(6) - 1
	case "number":
		return float64(w.IntN(12)-2) / 2
	case "boolean":
		return w.IntN(2) == 0
	case "array":
		list := []any{}
		prefix, _ := m["prefixItems"].([]any)
		for i := range w.IntN(4) {
			if i < len(prefix) {
				list = append(list, w.value(prefix[i], root, level+1))
			} else {
				list = append(list, w.value(m["items"], root, level+1))
			}
		}
		return list
	case "object":
		out := map[string]any{}
		properties, _ := m["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if w.IntN(4) > 0 {
				out[name] = w.value(properties[name], root, level+1)
			}
		}
		return out
	}
	return nil
}

func unmarshal(t *testing.T, raw []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func compile(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:x", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:x")
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

// TestEverySchema makes schemas by chance, and arguments for each. For every dialect: its server takes the schema; what
// the schema takes, the tool takes, unless something was left to words; and what the tool takes, the schema takes,
// unless the dialect cannot say it.
func TestEverySchema(t *testing.T) {
	t.Parallel()
	list, err := dialect.All()
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, dialect.Dialect{Name: "unknown"})
	const rounds = 100
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			t.Parallel()
			exact, taken, refused := 0, 0, 0
			for seed := range uint64(rounds) {
				w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), plain: plain, defs: 2}
				tool := w.tool()
				raw, err := json.Marshal(tool)
				if err != nil {
					t.Fatal(err)
				}
				original := schema.Compile(raw) // which the arguments of calls are checked with
				if original == nil {
					t.Fatalf("%s is not compiled", raw)
				}
				var values [][]byte
				for range 12 {
					if v, err := json.Marshal(w.value(tool, tool, 0)); err == nil {
						values = append(values, v)
					}
				}
				s := toolschema.Read(raw)
				compiled := map[string]*jsonschema.Schema{}
				for i := range list {
					d := &list[i]
					got := s.For(&d.Schema)
					if again := toolschema.Read(raw).For(&d.Schema); !bytes.Equal(got.JSON, again.JSON) || got.Words != again.Words {
						t.Fatalf("seed %d for %s is written in two ways:\n%s\n%s", seed, d.Name, got.JSON, again.JSON)
					}
					if problems := schematest.Faults(got.JSON, &d.Schema); len(problems) > 0 {
						t.Fatalf("seed %d: %s\nis sent to %s as\n%s\nwhich refuses it: %v", seed, raw, d.Name, got.JSON, problems)
					}
					if got.Exact {
						exact++
					}
					whole := plain || slices.Contains(d.Schema.Keywords, "type[]") && slices.Contains(d.Schema.Keywords, "anyOf")
					rendered := compiled[string(got.JSON)]
					if rendered == nil {
						rendered = compile(t, got.JSON)
						compiled[string(got.JSON)] = rendered
					}
					for _, v := range values {
						wire := got.Keys.Encode(v)
						value, sent := unmarshal(t, v), unmarshal(t, wire)
						if back := unmarshal(t, got.Keys.Decode(wire)); !reflect.DeepEqual(back, value) {
							t.Fatalf("seed %d: %s\nfor %s: %s is sent as %s, which comes back as %s", seed, raw, d.Name, v, wire, back)
						}
						inTool, inSchema := original.Validate(t.Context(), value) == nil, rendered.Validate(sent) == nil
						if _, ok := value.(map[string]any); !ok {
							continue // no arguments
						}
						switch {
						case inTool:
							taken++
						default:
							refused++
						}
						if inSchema && !inTool && got.Exact {
							t.Fatalf("seed %d: %s\nis sent to %s as\n%s\nwhich takes %s: the tool does not, and no word says so", seed, raw, d.Name, got.JSON, v)
						}
						if inTool && !inSchema && whole && !d.Schema.Closed && !bytes.Contains(got.JSON, []byte("items of any type")) {
							t.Fatalf("seed %d: %s\nis sent to %s as\n%s\nwhich does not take %s: the tool does", seed, raw, d.Name, got.JSON, v)
						}
					}
				}
			}
			if exact < rounds/4 || taken < rounds || refused < rounds {
				t.Errorf("%d exact schemas, %d arguments taken, %d refused: this test proves little", exact, taken, refused)
			}
		})
	}
}

// FuzzRead: whatever is said to be a schema, what goes out is one that every server takes.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"type":"object"}`, `{"$ref":"#"}`, `{"allOf":[{"$ref":"#/allOf/0"}]}`, `{"anyOf":[{"type":"array","items":[{},true]},false]}`,
		`{"type":["object","null"],"properties":{"a":{"enum":[1,null,"x",{}]},"é":{"const":[]}},"required":["é","b"]}`,
		`{"properties":{"a":{"exclusiveMinimum":true,"minimum":1e999,"pattern":"(","format":5,"nullable":true,"default":{}}}}`,
		`{"oneOf":[{"not":{"required":["a"]}},{"if":true,"then":{"type":"string"}}],"dependencies":{"a":["b"],"c":{}},"$defs":{"x":{"$anchor":"y"}}}`,
	} {
		f.Add(s)
	}
	list, err := dialect.All()
	if err != nil {
		f.Fatal(err)
	}
	list = append(list, dialect.Dialect{Name: "unknown"})
	f.Fuzz(func(t *testing.T, raw string) {
		for i := range list {
			d := &list[i]
			description, got, _ := toolschema.Tool(raw, json.RawMessage(raw), &d.Schema)
			if problems := schematest.Faults(got, &d.Schema); len(problems) > 0 || d.Schema.MaxDescription == 0 && len(description) > toolschema.MaxDescription {
				t.Fatalf("%q is sent to %s as %s with %d bytes of description: %v", raw, d.Name, got, len(description), problems)
			}
		}
	})
}
