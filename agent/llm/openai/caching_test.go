package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

func TestPriceOfCachedTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		price  float64
		cached int
		want   float64
	}{
		{"as any input", 2, 800, 2000},
		{"cheaper", 0.5, 800, 800},
		{"free", 0, 800, 400},
		{"nothing cached", 0.5, 0, 2000},
		{"more cached than read", 0.5, 5000, 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: sse(text("a"), finish("stop"),
				fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":%d}}}`, tt.cached))})
			p := provider(t, s, func(o *openai.Options) { o.Tariff = cost.FixedTariff(2, tt.price, 2, 8) })
			res, err := p.Chat(t.Context(), hi(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(res.USD*1e6-tt.want) > 1e-6 {
				t.Errorf("cost = %v, want %v millionths", res.USD*1e6, tt.want)
			}
		})
	}
}

// TestPrefixIsStable: on both wires, a longer conversation begins with the same bytes: instructions, tools in the given
// order, and all earlier messages with their vendor-specific fields.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	extra := func(host string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"host":%q,"fields":{"extra_content":{"sig":"<s>"}},"model":"gpt-6-sol","reasoning":[{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"}]}`, host))
	}
	tests := []struct{ wire, model, list string }{
		{openai.WireChat, "gpt-4o", "messages"},
		{openai.WireResponses, "gpt-6-sol", "input"},
	}
	for _, tt := range tests {
		t.Run(tt.wire, func(t *testing.T) {
			t.Parallel()
			answer := reply{body: sse(text("a"), finish("stop"), ended("completed"))}
			s := play(t, answer, answer, answer)
			p := s.provider(t, func(o *openai.Options) { o.Wire, o.Model = tt.wire, tt.model })
			req := &llm.Request{
				System: "be <short>", User: "u",
				Tools:    []llm.Tool{{Name: "z", Schema: json.RawMessage(`{"type": "object", "b": 1, "a": 2}`)}, {Name: "github:a"}, {Name: "b"}},
				Messages: []llm.Message{{Role: llm.User, Text: "do & go"}},
			}
			more := [][]llm.Message{
				{
					{Role: llm.Assistant, Text: "I do.", Uses: []llm.ToolUse{{ID: "1", Name: "z", Args: json.RawMessage(`{"x": "<"}`), Extra: extra(s.Listener.Addr().String())}, {ID: "2", Name: "b"}}},
					{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "1", Name: "z", Text: "fine"}},
					{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "2", Name: "b"}},
				},
				{{Role: llm.Assistant, Text: "Done."}, {Role: llm.User, Text: "again"}},
			}
			for i := range 3 {
				if i > 0 {
					req.Messages = append(req.Messages, more[i-1]...)
				}
				if _, err := p.Chat(t.Context(), req, nil); err != nil {
					t.Fatal(err)
				}
			}
			_, bodies := s.asked()
			for i := 1; i < len(bodies); i++ {
				before, after := fields(t, bodies[i-1]), fields(t, bodies[i])
				for _, name := range []string{"instructions", "tools", "model", "include", "prompt_cache_key"} {
					if !bytes.Equal(before[name], after[name]) {
						t.Errorf("%s changed from %s to %s", name, before[name], after[name])
					}
				}
				if old := bytes.TrimSuffix(before[tt.list], []byte("]")); len(old) < 3 || !bytes.HasPrefix(after[tt.list], append(bytes.Clone(old), ',')) {
					t.Errorf("messages began with\n%s\nnow with\n%s", before[tt.list], after[tt.list])
				}
			}
			last := fields(t, bodies[2])
			if z, a := bytes.Index(last["tools"], []byte(`"z"`)), bytes.Index(last["tools"], []byte(`"github__a"`)); z < 0 || a < z {
				t.Errorf("tools are in another order: %s", last["tools"])
			}
			if want := map[string]string{"messages": "extra_content", "input": "encrypted_content"}[tt.list]; !bytes.Contains(last[tt.list], []byte(want)) {
				t.Errorf("%s was not sent again: %s", want, last[tt.list])
			}
		})
	}
}

// fields splits a request; the bytes of each value are unchanged.
func fields(t *testing.T, body []byte) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
