package toolschema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
	"github.com/zephbot/zephbot/agent/llm/toolschema/schematest"
)

// TestKeys: names that a server does not accept have others on the wire, wherever the schema lists them, and come back.
func TestKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	for _, c := range []struct {
		name, schema, own, wire string
	}{
		{
			"at the top", `{"properties":{"filter[x]":{},"$top":{},"a b":{},"y":{}}}`,
			`{"y":1.50,"filter[x]":"<","$top":2,"a b":[]}`, `{"y":1.50,"filter_x_":"<","_top":2,"a_b":[]}`,
		},
		{"no name", `{"properties":{"":{}}}`, `{"":1}`, `{"_":1}`},
		{"long", `{"properties":{"` + long + `":{}}}`, `{"` + long + `":1}`, `{"` + long[:55] + `_d929cdee":1}`},
		{"taken", `{"properties":{"a b":{},"a_b":{}}}`, `{"a_b":1,"a b":2}`, `{"a_b":1,"a_b_6f58cef3":2}`},
		{"alike", `{"properties":{"a b":{},"a$b":{}}}`, `{"a b":1,"a$b":2}`, `{"a_b_c8687a08":1,"a_b_c7979da2":2}`},
		{
			"within others", `{"properties":{"o":{"properties":{"l$":{"items":{"properties":{"n$":{}}}}}}}}`,
			`{"o":{"l$":[{"n$":1},{"m$":1},2]}}`, `{"o":{"l_":[{"n_":1},{"m$":1},2]}}`,
		},
		{
			"behind references", `{"properties":{"o":{"$ref":"#/$defs/o"}},"$defs":{"o":{"allOf":[{"properties":{"n$":{}}},{"properties":{"m$":{}}}]}}}`,
			`{"o":{"n$":1,"m$":2}}`, `{"o":{"n_":1,"m_":2}}`,
		},
		{
			"in choices", `{"anyOf":[{"properties":{"a$":{}}},{"properties":{"b":{"oneOf":[{"type":"string"},{"type":"object","properties":{"c$":{}}}]}}}]}`,
			`{"a$":1,"b":{"c$":1}}`, `{"a_":1,"b":{"c_":1}}`,
		},
		{
			"in other properties and in order", `{"properties":{"t":{"prefixItems":[{},{"properties":{"a$":{}}}]}},"additionalProperties":{"properties":{"a$":{}}}}`,
			`{"t":[{"a$":1},{"a$":1}],"z":{"a$":1}}`, `{"t":[{"a$":1},{"a_":1}],"z":{"a_":1}}`,
		},
		{"data is left alone", `{"properties":{"a$":{},"data":{"type":"object"}}}`, `{"data":{"a$":1,"a_":2}}`, `{"data":{"a$":1,"a_":2}}`},
		{"nothing to do", `{"properties":{"a":{}}}`, `{ "a$" : 1 }`, `{ "a$" : 1 }`},
		{"no object", `{"properties":{"a$":{}}}`, `[{"a$":1}]`, `[{"a$":1}]`},
		{"no JSON", `{"properties":{"a$":{}}}`, `{"a$":`, `{"a$":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, of := range []string{"", "anthropic", "groq"} {
				d := dialectOf(t, of)
				_, schema, keys := toolschema.Tool("", json.RawMessage(c.schema), d)
				if problems := schematest.Faults(schema, d); len(problems) > 0 {
					t.Errorf("%s for %q: %v", schema, of, problems)
				}
				if got := keys.Encode(json.RawMessage(c.own)); string(got) != c.wire {
					t.Errorf("%s is sent to %q as %s, want %s", c.own, of, got, c.wire)
				}
				if got := keys.Decode(json.RawMessage(c.wire)); string(got) != c.own {
					t.Errorf("%s from %q comes back as %s, want %s", c.wire, of, got, c.own)
				}
			}
			if _, _, keys := toolschema.Tool("", json.RawMessage(c.schema), dialectOf(t, "openai")); keys != nil {
				t.Error("names are translated for a server that takes them all")
			}
		})
	}
}

// TestBrokenArguments: names come back also in arguments that somebody has to mend, or of which the model is told.
func TestBrokenArguments(t *testing.T) {
	t.Parallel()
	_, _, keys := toolschema.Tool("", json.RawMessage(`{"properties":{"filter[x]":{},"a$":{},"b":{}}}`), dialectOf(t, "anthropic"))
	for from, want := range map[string]string{
		`{"filter_x_": "1", "a_" : 2,}`:  `{"filter[x]": "1", "a$" : 2,}`,
		`{"a_":"cut`:                     `{"a$":"cut`,
		`{"a_"`:                          `{"a_"`,
		`{"b":"a_", "x \" a_": 1, "a_":`: `{"b":"a_", "x \" a_": 1, "a$":`,
		`"{\"a_\":1}"`:                   `"{\"a$\":1}"`,
		`"{\"a_\":"`:                     `"{\"a$\":"`,
		`"a_"`:                           `"a_"`,
		`"\"a_\""`:                       `"\"a_\""`,
		`null`:                           `null`,
		``:                               ``,
		`{"a_":1}{"a_":2}`:               `{"a$":1}{"a$":2}`,
	} {
		if got := keys.Decode(json.RawMessage(from)); string(got) != want {
			t.Errorf("%s comes back as %s, want %s", from, got, want)
		}
	}
}

// TestBothNames: a model that writes both names of a property keeps both, so that neither value is lost unseen.
func TestBothNames(t *testing.T) {
	t.Parallel()
	_, _, keys := toolschema.Tool("", json.RawMessage(`{"properties":{"a$":{}}}`), dialectOf(t, "anthropic"))
	const both = `{"a$":1,"a_":2}`
	if got := keys.Decode(json.RawMessage(both)); string(got) != both {
		t.Errorf("%s comes back as %s", both, got)
	}
}

// FuzzKeys: whatever the schema and the arguments are, what was sent comes back.
func FuzzKeys(f *testing.F) {
	f.Add(`{"properties":{"a$":{"items":{"anyOf":[{"properties":{"b[]":{}}}]}}}}`, `{"a$":[{"b[]":1}]}`)
	f.Add(`{"properties":{"":{"$ref":"#"}}}`, `{"":{"":{}}}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		_, _, keys := toolschema.Tool("", json.RawMessage(schema), &dialect.Schema{})
		sent := keys.Encode(json.RawMessage(args))
		if json.Valid([]byte(args)) && !json.Valid(sent) || !json.Valid([]byte(args)) && string(sent) != args {
			t.Fatalf("%s is sent as %s", args, sent)
		}
		keys.Decode(json.RawMessage(args))
	})
}
