package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/schema"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestComplete: every object gets properties and every array items, wherever it stands; what is complete stays as it was.
func TestComplete(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"type":"object","additionalProperties":false}`:                                               `{"type":"object","additionalProperties":false,"properties":{}}`,
		` {"type":"object", "properties":{} } `:                                                        ` {"type":"object", "properties":{} } `,
		`{"type":"object","properties":{"b<":{"type":"array"},"a":{"maximum":1e40}}}`:                  `{"type":"object","properties":{"b<":{"type":"array","items":{}},"a":{"maximum":1e40}}}`,
		`{"type":"object","properties":{"a":{"type":["null","object","array"]}}}`:                      `{"type":"object","properties":{"a":{"type":["null","object","array"],"properties":{},"items":{}}}}`,
		`{"type":"object","properties":{"a":{"default":{"type":"object"},"enum":[{"type":"array"}]}}}`: `{"type":"object","properties":{"a":{"default":{"type":"object"},"enum":[{"type":"array"}]}}}`,
		`{"type":"object","properties":{"type":{"type":"object"},"items":{"anyOf":[{"type":"object"},true,{"items":{"type":"object"}}]}},"$defs":{"d":{"not":{"type":"array"}}}}`: `{"type":"object","properties":{"type":{"type":"object","properties":{}},"items":{"anyOf":[{"type":"object","properties":{}},true,{"items":{"type":"object","properties":{}}}]}},"$defs":{"d":{"not":{"type":"array","items":{}}}}}`,
		`{"type":"object","properties":true}`: `{"type":"object","properties":true}`, `{"type":"object","properties":[{}]}`: `{"type":"object","properties":[{}]}`,
		`true`: `true`, `null`: `null`, ``: ``, `{"type":`: `{"type":`, `[]`: `[]`, `{"type":"object"`: `{"type":"object"`, `{"type":"object","not":[{]}}`: `{"type":"object","not":[{]}}`,
	} {
		got := schema.Complete(json.RawMessage(raw))
		if string(got) != want {
			t.Errorf("Complete(%s) = %s, want %s", raw, got, want)
		}
		if again := schema.Complete(got); string(again) != string(got) {
			t.Errorf("Complete(%s) changes once more: %s", got, again)
		}
		if raw != string(got) {
			if fault := toolstest.SchemaFault(got); fault != "" {
				t.Errorf("%s: %s", got, fault)
			}
		}
	}
	deep := strings.Repeat(`{"type":"array","items":`, 500) + "{}" + strings.Repeat("}", 500)
	if got := schema.Complete(json.RawMessage(deep)); string(got) != deep {
		t.Errorf("a deep schema has changed")
	}
}

// FuzzComplete: the result says the same about every value of the kinds that were left open, and nothing panics. Items that
// nothing else speaks of (unevaluatedItems) are taken then.
func FuzzComplete(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"a":[1,{}]}`)
	f.Add(`{"type":["object","array"],"additionalProperties":{"type":"object"}}`, `[{"b":{}}]`)
	f.Fuzz(func(t *testing.T, raw, text string) {
		done := schema.Complete(json.RawMessage(raw))
		before, after := schema.Compile(json.RawMessage(raw)), schema.Compile(done)
		var v any
		if strings.Contains(raw, "unevaluated") || before == nil || after == nil || json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		if was, is := before.Validate(t.Context(), v), after.Validate(t.Context(), v); (was == nil) != (is == nil) {
			t.Errorf("%s takes %s: %v; %s: %v", raw, text, was, done, is)
		}
	})
}
