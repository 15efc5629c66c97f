package catalog_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/tools"
)

// required returns a schema with n required strings and more properties.
func required(n int, more ...string) json.RawMessage {
	var props, req []string
	for i := range n {
		props = append(props, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		req = append(req, fmt.Sprintf(`"p%d"`, i))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(append(props, more...), ",") + `},"required":[` + strings.Join(req, ",") + `]}`)
}

func enum(n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(`"v%d"`, i)
	}
	return `"e":{"type":"string","enum":[` + strings.Join(values, ",") + `]}`
}

func TestComplexity(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		schema json.RawMessage
		want   float64
	}{
		{"empty", json.RawMessage(`{}`), 0},
		{"not JSON", json.RawMessage(`{`), 0},
		{"not an object", json.RawMessage(`[1]`), 0},
		{"one string", object("a"), 0},
		{"one required", required(1), 0.1},
		{"three required", required(3), 0.3},
		{"enum of 10", required(0, enum(10)), 0.3},
		{"array of strings", required(0, `"l":{"type":"array","items":{"type":"string"}}`), 0.15},
		{"array of objects", required(0, `"l":{"type":"array","items":{"type":"object","properties":{}}}`), 0.3},
		{"array of objects with required", required(2, `"l":{"type":"array","items":{"type":"object","properties":{"a":{}},"required":["a"]}}`), 0.6},
		{"six required", required(6), 0.6},
		{"sixty required", required(60), 0.6},
		{"four required, enum of 10", required(4, enum(10)), 0.7},
		{"enum of 20", required(0, enum(20)), 0.6},
		{"constants", required(0, `"c":{"oneOf":[{"const":"a"},{"const":"b"}]}`), 0.06},
		{"alternatives", required(0, `"c":{"anyOf":[{"type":"string"},{"type":"null"}]}`), 0.15},
		{"four levels", required(0, `"a":{"properties":{"b":{"properties":{"c":{"properties":{"d":{"properties":{"e":{}}}}}}}}}`), 0.6},
		{"all at once", required(9, enum(30), `"a":{"items":{"items":{"items":{"items":{"items":{}}}}}}`), 1},
		{"a reference", json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"object","properties":{"b":{}},"required":["b"]}}}`), 0.25},
		{"a reference to itself", json.RawMessage(`{"properties":{"a":{"$ref":"#"}}}`), 0.3},
		{"a reference to nothing", json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"https://example.org/"},"c":{"$ref":"#/properties/a/0"}}}`), 0},
		{"a parameter called required", json.RawMessage(`{"properties":{"required":{"type":"string"},"enum":{"type":"string"}}}`), 0},
	}
	for _, tt := range tests {
		if got := catalog.Complexity(tt.schema); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestHostileSchemasEnd(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 40 { // each refers to the next twice: 2^40 paths
		defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	got := catalog.Complexity(json.RawMessage(`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`))
	if got != 0.6 {
		t.Errorf("complexity = %v", got)
	}
	deep := strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)
	if got := catalog.Complexity(json.RawMessage(deep)); got != 0.6 {
		t.Errorf("complexity = %v", got)
	}
}

func TestThreshold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		threshold float64
		want      []string // for thresholds 0, 0.3, 0.6 and 1
	}{
		{0.6, []string{"c", "d"}},
		{math.NaN(), []string{"c", "d"}},
		{math.Inf(1), []string{"c", "d"}},
		{math.Inf(-1), []string{"c", "d"}},
		{0.61, []string{"d"}},
		{7, []string{"d"}},
		{-1, []string{"a", "b", "c", "d"}},
		{0, []string{"a", "b", "c", "d"}},
	}
	defs := []tools.Definition{
		{Name: "a", Schema: json.RawMessage(`{}`)}, {Name: "b", Schema: required(3)}, {Name: "c", Schema: required(6)}, {Name: "d", Schema: required(6, enum(20))},
	}
	for _, tt := range tests {
		k := setup(t, catalog.Options{TAFC: catalog.TAFC{Enabled: true, Threshold: tt.threshold}}, defs...)
		var shown, thinks []string
		for _, o := range k.Tools(t.Context(), &agent.Turn{ID: "1"}, agent.View{Step: 1}) {
			if strings.Contains(string(o.Schema), `"thinking"`) {
				shown = append(shown, o.Name)
			}
			if k.Thinks(o.Definition) {
				thinks = append(thinks, o.Name)
			}
			if strings.Contains(string(o.Definition.Schema), "thinking") {
				t.Errorf("the definition of %s has changed", o.Name)
			}
		}
		if !slices.Equal(shown, tt.want) || !slices.Equal(thinks, tt.want) {
			t.Errorf("threshold %v: shown %v, thinks %v, want %v", tt.threshold, shown, thinks, tt.want)
		}
	}
	k := setup(t, catalog.Options{}, defs...)
	if k.Thinks(defs[3]) {
		t.Error("thinks although it is off")
	}
}

func TestWithThinking(t *testing.T) {
	t.Parallel()
	const field = `"thinking":{"type":"string","description":"Optional, fill in first: think step by step about which values the other parameters need. The tool does not get it."}`
	tests := []struct{ name, schema, want string }{
		{"first, order and unknown keywords kept", `{"z":1, "properties" : { "b":{"x-y":1.50}, "a":{} },"x":[1e2]}`, `{"z":1, "properties" : {FIELD, "b":{"x-y":1.50}, "a":{} },"x":[1e2]}`},
		{"no properties yet", `{"properties":{ }}`, `{"properties":{FIELD }}`},
		{"none at all", ` {"type":"object"}`, ` {"properties":{FIELD},"type":"object"}`},
		{"empty", `{}`, `{"properties":{FIELD}}`},
		{"escaped key", `{"\u0070roperties":{"a":{}}}`, `{"\u0070roperties":{FIELD,"a":{}}}`},
		{"the last counts", `{"properties":{"a":{}},"properties":{"b":{}}}`, `{"properties":{"a":{}},"properties":{FIELD,"b":{}}}`},
		{"nested ones are not meant", `{"a":{"properties":{}},"properties":{"b":{"properties":{"thinking":{}}}}}`, `{"a":{"properties":{}},"properties":{FIELD,"b":{"properties":{"thinking":{}}}}}`},
		{"own", `{"properties":{"Thinking":{}}}`, ""},
		{"own, required", `{"required":["thinking"]}`, ""},
		{"own, referred to", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"thinking":{}}}}}`, ""},
		{"own, composed", `{"allOf":[{"properties":{"thinking":{}}}]}`, ""},
		{"composed without", `{"anyOf":[{"required":["a"]}],"properties":{"a":{}}}`, `{"anyOf":[{"required":["a"]}],"properties":{FIELD,"a":{}}}`},
		{"properties of another kind", `{"properties":[]}`, ""},
		{"not an object", `[]`, ""},
		{"null", `null`, ""},
		{"not JSON", `{"a"`, ""},
	}
	for _, tt := range tests {
		got, ok := catalog.WithThinking([]byte(tt.schema))
		if diff := cmp.Diff(strings.ReplaceAll(tt.want, "FIELD", field), string(got)); diff != "" || ok != (tt.want != "") {
			t.Errorf("%s: %t (-want +got):\n%s", tt.name, ok, diff)
		}
	}
}

func TestOutputHint(t *testing.T) {
	t.Parallel()
	mcp, own, plain := tool("github:fork", "Copies it."), tool("bash", "Runs it."), tool("github:x", "Does it.")
	mcp.OutputSchema, own.OutputSchema = json.RawMessage(`{"a":1}`), json.RawMessage(`{"a":1}`)
	o := catalog.Options{Discovery: catalog.Discovery{Strategy: catalog.None}, OutputHint: func(schema json.RawMessage) string { return "Output: " + string(schema) }}
	k := setup(t, o, mcp, own, plain)
	var got []string
	for _, o := range k.Tools(t.Context(), &agent.Turn{ID: "1"}, agent.View{Step: 1}) {
		got = append(got, o.Description)
		if strings.Contains(o.Definition.Description, "Output") {
			t.Errorf("the definition of %s has changed", o.Name)
		}
	}
	if diff := cmp.Diff([]string{"Copies it.\nOutput: {\"a\":1}", "Runs it.", "Does it."}, got); diff != "" {
		t.Errorf("descriptions (-want +got):\n%s", diff)
	}
}
