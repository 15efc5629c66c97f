package dialect

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"testing"
)

// TestModelRows: each row says where it is from and whom it means, and its patterns, servers and rules exist.
func TestModelRows(t *testing.T) {
	t.Parallel()
	dec := json.NewDecoder(bytes.NewReader(modelRows))
	dec.DisallowUnknownFields()
	var list []modelRow
	if err := dec.Decode(&list); err != nil || len(list) < 10 {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	for i, r := range list {
		if len(r.Facts) == 0 || len(r.Words)+len(r.Names) == 0 {
			t.Errorf("row %d has no source, or means no model", i)
		}
		for _, pattern := range slices.Concat(r.Names, r.Except) {
			if _, err := path.Match(pattern, ""); err != nil {
				t.Errorf("row %d, %q: %v", i, pattern, err)
			}
		}
		for _, server := range r.At {
			if _, ok := Named(server); !ok {
				t.Errorf("row %d: there is no server %q", i, server)
			}
		}
		for _, rule := range r.History {
			if (History{}).withRules([]string{rule}) == (History{}) {
				t.Errorf("row %d: there is no rule %q", i, rule)
			}
		}
		if !slices.Contains([]string{"", "chat", "responses"}, r.Wire) || !slices.Contains([]string{"", "max_completion_tokens"}, r.AnswerLimit) {
			t.Errorf("row %d: wire %q, answer_limit %q", i, r.Wire, r.AnswerLimit)
		}
		for _, kind := range r.Accepts {
			if kind != "image" && kind != "file" {
				t.Errorf("row %d: models do not take %q", i, kind)
			}
		}
	}
}

// TestOfModel: what a model wants depends on its name, with or without a vendor before it, and on the server where the
// row says so.
func TestOfModel(t *testing.T) {
	t.Parallel()
	const newer, older = "max_completion_tokens", ""
	for _, tt := range []struct {
		server, model, wire, limit string
		encrypted                  bool
	}{
		{"openai", "gpt-4o", "", older, false},
		{"openai", "gpt-5-mini", "", newer, true},
		{"openai", "GPT-5-mini", "", newer, true},
		{"openai", "gpt-5-chat-latest", "", newer, false},
		{"openai", "o3", "", newer, true},
		{"openai", "gpt-5.4", "responses", newer, true},
		{"openai", "gpt-5.3", "", newer, true},
		{"openrouter", "openai/gpt-5.4", "chat", newer, true},
		{"openrouter", "openai/gpt-6", "responses", newer, true},
		{"", "gpt-6-mini", "responses", newer, true},
		{"azure", "gpt-35-turbo", "", older, false},
		{"groq", "openai/gpt-oss-120b", "chat", older, false},
		{"", "olmo-2", "", older, false},
	} {
		d, _ := Named(tt.server)
		d = d.OfModel(tt.model)
		if d.Wire != tt.wire || d.Traits != (Traits{AnswerLimit: tt.limit, Encrypted: tt.encrypted}) {
			t.Errorf("%s, %s: wire %q, %+v", tt.server, tt.model, d.Wire, d.Traits)
		}
	}
}
