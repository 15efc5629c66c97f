package web_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The schemas in the shape that every provider takes: one object, plain types, no surprises.
func TestSchemas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "x"), nil)
	type property struct {
		Type    string
		Minimum *float64
	}
	type schema struct {
		Type       string
		Required   []string
		Properties map[string]property
	}
	zero := 0.0
	want := map[string]schema{
		"fetch": {Type: "object", Required: []string{"url"}, Properties: map[string]property{"url": {Type: "string"}}},
		"web_scrape": {Type: "object", Required: []string{"url", "select"}, Properties: map[string]property{
			"url": {Type: "string"}, "select": {Type: "string"}, "extract": {Type: "string"}, "limit": {Type: "integer", Minimum: &zero},
		}},
	}
	got := map[string]schema{}
	for name, tool := range w.tools {
		var s schema
		if err := json.Unmarshal(tool.Definition.Schema, &s); err != nil {
			t.Fatalf("%s: %v in %s", name, err, tool.Definition.Schema)
		}
		got[name] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
