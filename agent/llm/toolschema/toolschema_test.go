package toolschema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
	"github.com/zephbot/zephbot/agent/llm/toolschema/schematest"
)

// dialectOf returns the schemas of a preset; "" = those of an unknown server.
func dialectOf(t testing.TB, name string) *dialect.Schema {
	t.Helper()
	d, ok := dialect.Named(name)
	if !ok && name != "" {
		t.Fatalf("no dialect %q", name)
	}
	return &d.Schema
}

// inObject returns the schema of an object with one property.
func inObject(property string) string {
	return `{"type":"object","properties":{"p":` + property + `}}`
}

// TestFor: what servers have refused goes out in a form that they take, and what that form cannot say is said in words.
func TestFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dialect, schema, want, words string
	}{
		{"object without properties", "openai", `{"type":"object"}`, `{"type":"object","properties":{}}`, ""},
		{"closed object without properties", "openai", `{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{"nested object without properties", "openai", inObject(`{"type":"object"}`), inObject(`{"type":"object","properties":{}}`), ""},
		{"list without items", "openai", inObject(`{"type":"array"}`), inObject(`{"type":"array","description":"items of any type","items":{"type":"string"}}`), ""},
		{"list of lists without items", "openai", inObject(`{"type":"array","items":{"type":"array"}}`), inObject(`{"type":"array","items":{"type":"array","description":"items of any type","items":{"type":"string"}}}`), ""},
		{"list of anything", "openai", inObject(`{"type":"array","items":{}}`), inObject(`{"type":"array","items":{}}`), ""},
		{
			"two objects at the root", "openai", `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"k":{"type":"string"}},"required":["a","k"]},{"type":"object","properties":{"b":{"type":"number"},"k":{"type":"string"}},"required":["b","k"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"k":{"type":"string"},"b":{"type":"number"}},"required":["k"]}`, "at least one of: object with a: string, k: string; object with b: number, k: string",
		},
		{
			"two objects at the root", "anthropic", `{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "exactly one of: object with a: string; object with b: string",
		},
		{
			"required by turns", "openai", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "exactly one of: a; b",
		},
		{
			"allOf at the root", "openai", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"integer","minimum":1}},"required":["b"]},{"properties":{"b":{"maximum":5}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","minimum":1,"maximum":5}},"required":["b"]}`, "",
		},
		{
			"a discriminator", "gemini", `{"oneOf":[{"type":"object","properties":{"k":{"const":"x"},"a":{"type":"string"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"y"}},"required":["k"]}]}`,
			`{"type":"object","properties":{"k":{"type":"string","enum":["x","y"]},"a":{"type":"string"}},"required":["k"]}`, `exactly one of: object with k: "x", a?: string; object with k: "y"`,
		},
		{"list of types, const and $schema", "gemini", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"p":{"type":["string","null"],"const":"x"}}}`, inObject(`{"type":"string","enum":["x"]}`), ""},
		{"null", "gemini", inObject(`{"type":["string","null"]}`), inObject(`{"type":"string","description":"or null"}`), ""},
		{"enum of numbers", "gemini", inObject(`{"type":"integer","enum":[1,2],"description":"How many."}`), inObject(`{"type":"integer","description":"How many. (one of 1, 2)"}`), ""},
		{"enum with an empty text", "gemini", inObject(`{"enum":["","a"]}`), inObject(`{"type":"string","description":"one of \"\", \"a\""}`), ""},
		{"enum with null", "moonshot", inObject(`{"type":["string","null"],"enum":["a",null]}`), inObject(`{"type":"string","description":"or null","enum":["a"]}`), ""},
		{"exclusive bounds", "gemini", inObject(`{"type":"integer","exclusiveMinimum":0}`), inObject(`{"type":"integer","minimum":1}`), ""},
		{"exclusive bounds of a number", "gemini", inObject(`{"type":"number","exclusiveMinimum":0}`), inObject(`{"type":"number","description":"more than 0"}`), ""},
		{"bounds of draft 4", "openai", inObject(`{"type":"number","minimum":0,"exclusiveMinimum":true}`), inObject(`{"type":"number","exclusiveMinimum":0}`), ""},
		{"format", "gemini", inObject(`{"type":"string","format":"uri"}`), inObject(`{"type":"string","description":"format uri"}`), ""},
		{"format", "openai", inObject(`{"type":"string","format":"uri"}`), inObject(`{"type":"string","format":"uri"}`), ""},
		{"format that nobody knows", "openai", inObject(`{"type":"string","format":"slug"}`), inObject(`{"type":"string","description":"format slug"}`), ""},
		{
			"names of properties", "gemini", inObject(`{"type":"object","propertyNames":{"pattern":"^x"},"additionalProperties":{"type":"integer"}}`),
			inObject(`{"type":"object","description":"names of properties: string (must match ^x); other properties: integer","properties":{}}`), "",
		},
		{"type beside anyOf", "moonshot", inObject(`{"type":"string","anyOf":[{"type":"string"},{"type":"null"}]}`), inObject(`{"type":"string"}`), ""},
		{"string or null", "moonshot", inObject(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), inObject(`{"type":"string","description":"or null"}`), ""},
		{"true", "moonshot", inObject(`true`), inObject(`{"type":"string","description":"any JSON value"}`), ""},
		{
			"tuple", "moonshot", inObject(`{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`),
			inObject(`{"type":"array","description":"its items in order: string, integer","items":{"type":"string","description":"or integer"}}`), "",
		},
		{
			"prefixItems", "openai", inObject(`{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":false}`),
			inObject(`{"type":"array","description":"its items in order: number, number","items":{"type":"number"}}`), "",
		},
		{
			"required without properties", "groq", `{"type":"object","required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"any JSON value"}},"required":["a"],"additionalProperties":false}`, "",
		},
		{
			"open object", "groq", inObject(`{"type":"object","properties":{"a":{"type":"string"}}}`),
			`{"type":"object","properties":{"p":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}},"additionalProperties":false}`, "",
		},
		{
			"object for any names", "groq", inObject(`{"type":"object","additionalProperties":{"type":"string"}}`),
			`{"type":"object","properties":{"p":{"type":"object","properties":{},"additionalProperties":{"type":"string"}}},"additionalProperties":false}`, "",
		},
		{"nothing at all", "deepseek", `{}`, `{"type":"object","properties":{}}`, ""},
		{"no JSON", "deepseek", `{"type":`, `{"type":"object","properties":{}}`, "its arguments are not described here: their schema cannot be read"},
		{"no schema", "deepseek", ``, `{"type":"object","properties":{}}`, ""},
		{"null", "deepseek", `null`, `{"type":"object","properties":{}}`, ""},
		{
			"requires what it does not take", "openai", `{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "it requires b, but takes no value of it",
		},
		{"not an object", "deepseek", `{"type":"string"}`, `{"type":"object","properties":{}}`, "no arguments are known that it takes: string"},
		{
			"recursion", "fireworks", `{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"v":{"type":"string"},"next":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","properties":{"n":{"type":"object","properties":{"v":{"type":"string"},"next":{"type":"object","description":"nested in the same way as the value that contains it","properties":{}}}}}}`, "",
		},
		{
			"recursion of the root", "fireworks", `{"type":"object","properties":{"next":{"$ref":"#"}}}`,
			`{"type":"object","properties":{"next":{"type":"object","description":"nested in the same way as the value that contains it","properties":{}}}}`, "",
		},
		{
			"anyOf of only required", "fireworks", inObject(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`),
			inObject(`{"type":"object","description":"at least one of: a; b","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`), "",
		},
		{"pattern", "llamacpp", inObject(`{"type":"string","pattern":"\\d+"}`), inObject(`{"type":"string","description":"must match \\d+"}`), ""},
		{"pattern", "openai", inObject(`{"type":"string","pattern":"\\d+"}`), inObject(`{"type":"string","pattern":"\\d+"}`), ""},
		{"pattern that looks ahead", "openai", inObject(`{"type":"string","pattern":"(?=x)y"}`), inObject(`{"type":"string","description":"must match (?=x)y"}`), ""},
		{
			"reference with siblings", "moonshot", `{"type":"object","properties":{"p":{"$ref":"#/definitions/a/b~1c","description":"Mine.","maxLength":9}},"definitions":{"a":{"b/c":{"type":"string","description":"Theirs.","minLength":1}}}}`,
			inObject(`{"type":"string","description":"Mine. (at least 1 characters; at most 9 characters)"}`), "",
		},
		{
			"siblings of a reference in draft 7", "openai", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"$ref":"#/definitions/a","maxLength":9}},"definitions":{"a":{"type":"string"}}}`,
			inObject(`{"type":"string"}`), "",
		},
		{"reference to a name", "openai", `{"type":"object","properties":{"p":{"$ref":"#a"}},"$defs":{"x":{"$anchor":"a","type":"integer"}}}`, inObject(`{"type":"integer"}`), ""},
		{"reference to nowhere", "openai", inObject(`{"$ref":"https://example.org/x.json"}`), inObject(`{"description":"described by https://example.org/x.json"}`), ""},
		{
			"choice", "openai", inObject(`{"oneOf":[{"type":"object","properties":{"k":{"const":"x"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"y"},"n":{"type":"integer"}},"required":["k"]}]}`),
			inObject(`{"anyOf":[{"type":"object","properties":{"k":{"type":"string","enum":["x"]}},"required":["k"]},{"type":"object","properties":{"k":{"type":"string","enum":["y"]},"n":{"type":"integer"}},"required":["k"]}]}`), "",
		},
		{
			"enumeration with descriptions", "gemini", inObject(`{"oneOf":[{"const":"a","description":"first"},{"const":"b","description":"second"}]}`),
			inObject(`{"type":"string","description":"\"a\": first; \"b\": second","enum":["a","b"]}`), "",
		},
		{
			"conditions", "openai", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"dependentRequired":{"a":["b"]},"not":{"required":["a","b"]}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "not together: a, b; a only together with b",
		},
		{
			"name of a property", "anthropic", `{"type":"object","properties":{"filter[x]":{"type":"string","description":"By x."},"y":{"type":"string"}},"required":["filter[x]"]}`,
			`{"type":"object","properties":{"filter_x_":{"type":"string","description":"By x. (its full name is \"filter[x]\")"},"y":{"type":"string"}},"required":["filter_x_"]}`, "",
		},
		{"names of types that are none", "openai", inObject(`{"type":"dict"}`), inObject(`{"type":"object","properties":{}}`), ""},
		{"title that repeats a name", "openai", inObject(`{"type":"string","title":"P"}`), inObject(`{"type":"string"}`), ""},
		{
			"default", "cerebras", inObject(`{"type":"integer","default":5}`),
			`{"type":"object","properties":{"p":{"type":"integer","description":"default 5"}},"additionalProperties":false}`, "",
		},
		{
			"several types", "", inObject(`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`),
			inObject(`{"type":"array","description":"or string","items":{"type":"string"}}`), "",
		},
	} {
		t.Run(c.name+"/"+c.dialect, func(t *testing.T) {
			t.Parallel()
			d := dialectOf(t, c.dialect)
			got := toolschema.Read(json.RawMessage(c.schema)).For(d)
			if string(got.JSON) != c.want || got.Words != c.words {
				t.Errorf("%s\nis sent as %s\nwant       %s\nin words: %s\nwant:     %s", c.schema, got.JSON, c.want, got.Words, c.words)
			}
			if problems := schematest.Faults(got.JSON, d); len(problems) > 0 {
				t.Errorf("%s is refused: %v", got.JSON, problems)
			}
		})
	}
}

// TestTool: a description that is too long goes on in the schema.
func TestTool(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("äb ", 600)
	description, schema, _ := toolschema.Tool(long, json.RawMessage(`{"type":"object","description":"Own.","minProperties":1}`), dialectOf(t, "openai"))
	var got struct{ Description string }
	if err := json.Unmarshal(schema, &got); err != nil || len(description) > toolschema.MaxDescription || !strings.HasSuffix(description, "…") {
		t.Fatalf("%d bytes: %s, %v", len(description), description, err)
	}
	rest, _, _ := strings.Cut(strings.TrimPrefix(got.Description, "…"), " (at least 1 properties)")
	if strings.TrimSuffix(description, "…")+rest+" " != long || !strings.HasSuffix(got.Description, "\nOwn.") {
		t.Errorf("%s\n goes on as %s", description, got.Description)
	}
	if description, _, _ := toolschema.Tool(long, nil, dialectOf(t, "anthropic")); !strings.HasPrefix(description, strings.TrimSpace(long)) {
		t.Errorf("cut to %d bytes for a server without a limit", len(description))
	}
}

// TestLimits: no schema, however it multiplies itself, becomes large or takes long.
func TestLimits(t *testing.T) {
	t.Parallel()
	doubling := func(form string) string {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
		for i := range 60 {
			next := `{"$ref":"#/$defs/d` + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10)) + `"}`
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(`"d` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `":` + strings.ReplaceAll(form, "NEXT", next))
		}
		return strings.Replace(b.String(), "d0\"}}", "d00\"}}", 1) + `,"d60":{"type":"string"}}}`
	}
	for name, schema := range map[string]string{
		"anyOf":      doubling(`{"anyOf":[NEXT,NEXT,{"type":"integer"}]}`),
		"allOf":      doubling(`{"allOf":[NEXT,NEXT]}`),
		"both":       doubling(`{"allOf":[{"anyOf":[NEXT,{"minLength":3}]},{"oneOf":[NEXT,{"minLength":2}]}]}`),
		"properties": doubling(`{"type":"object","properties":{"x":NEXT,"y":NEXT}}`),
		"not":        doubling(`{"not":{"anyOf":[NEXT,{"not":NEXT}]}}`),
		"patterns":   doubling(`{"patternProperties":{"a":NEXT,"b":NEXT},"propertyNames":NEXT,"contains":NEXT}`),
		"tuple":      doubling(`{"prefixItems":[NEXT,NEXT]}`),
		"enum":       inObject(`{"enum":[` + strings.Repeat(`"abcdefg",`, 20_000) + `"z"]}`),
		"values":     inObject(`{"type":"array","items":{"enum":[` + strings.TrimSuffix(numbered(5000), ",") + `]}}`),
		"deep":       strings.Repeat(`{"type":"object","properties":{"a":`, 300) + `{}` + strings.Repeat(`}}`, 300),
		"too deep":   strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat(`}`, 100_000),
		"too long":   inObject(`{"description":"` + strings.Repeat("x", toolschema.MaxBytes) + `"}`),
	} {
		for _, of := range []string{"", "openai", "groq"} {
			d := dialectOf(t, of)
			got := toolschema.Read(json.RawMessage(schema)).For(d)
			if problems := schematest.Faults(got.JSON, d); len(problems) > 0 || len(got.JSON) > 2*toolschema.MaxBytes || got.Exact && name != "enum" {
				t.Errorf("%s for %q: %d bytes, exact: %v, %v", name, of, len(got.JSON), got.Exact, problems)
			}
		}
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"v` + strings.Repeat("9", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + `",`)
	}
	return b.String()
}
