package openai_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: sse(text("a"), finish("stop"))})
	long := strings.Repeat("i", 70)
	req := &llm.Request{
		System: "be short", User: "u1", MaxTokens: 7,
		Tools: []llm.Tool{{Name: "github:x", Description: "makes x", Schema: json.RawMessage(`{"type":"object","$defs":{"a":{"const":"x"}},"properties":{"a":{"$ref":"#/$defs/a"}}}`)}, {Name: "bare"}},
		Messages: []llm.Message{
			{Role: llm.User, Text: "do"},
			{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: long, Name: "github:x", Args: json.RawMessage(`{"a":`)}, {ID: "2", Name: "bare"}}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: long, Name: "github:x", Text: " \n"}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "2", Name: "bare", Text: "it is full", Error: true}},
			{Role: llm.Assistant},
			{Role: llm.User, Text: "go on"},
		},
	}
	if _, err := provider(t, s, nil).Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	got := s.request(t)
	if auth := s.header.Get("Authorization"); auth != "Bearer "+key {
		t.Errorf("Authorization = %q", auth)
	}
	id := got["messages"].([]any)[3].(map[string]any)["tool_call_id"]
	if id == long || len(id.(string)) > 40 {
		t.Errorf("tool_call_id = %v, want a short one", id)
	}
	call := func(id any, name, args string) any {
		return map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args}}
	}
	want := map[string]any{
		"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true}, "user": "u1", "max_tokens": 7.0,
		"messages": []any{
			map[string]any{"role": "system", "content": "be short"},
			map[string]any{"role": "user", "content": "do"},
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call(id, "github__x", `{"not_an_object":"{\"a\":"}`), call("2", "bare", "{}")}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": "(no output)"},
			map[string]any{"role": "tool", "tool_call_id": "2", "content": "[the tool reports a failure]\nit is full"},
			map[string]any{"role": "assistant", "content": "(empty)"},
			map[string]any{"role": "user", "content": "go on"},
		},
		"tools": []any{
			map[string]any{"type": "function", "function": map[string]any{"name": "github__x", "description": "makes x", "parameters": map[string]any{
				"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string", "enum": []any{"x"}}},
			}}},
			map[string]any{"type": "function", "function": map[string]any{"name": "bare", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestTokenField(t *testing.T) {
	t.Parallel()
	tests := []struct{ model, field string }{
		{"gpt-4o", "max_tokens"},
		{"llama3.1", "max_tokens"},
		{"o3-mini", "max_completion_tokens"},
		{"gpt-5.1", "max_completion_tokens"},
		{"openai/gpt-5", "max_completion_tokens"},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: sse(text("a"), finish("stop"))})
			p := provider(t, s, func(o *openai.Options) { o.Model, o.MaxTokens, o.Key = tt.model, 99, "" })
			if _, err := p.Chat(t.Context(), hi(), nil); err != nil {
				t.Fatal(err)
			}
			body := s.request(t)
			for _, field := range []string{"max_tokens", "max_completion_tokens"} {
				if _, ok := body[field]; ok != (field == tt.field) {
					t.Errorf("%s present: %t", field, ok)
				}
			}
			if s.header.Get("Authorization") != "" {
				t.Error("an empty key was sent")
			}
		})
	}
}

func TestModelThatNeedsAnotherWire(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{})
	p := provider(t, s, func(o *openai.Options) { o.Model, o.Wire = "gpt-6-sol", openai.WireChat })
	_, err := p.Chat(t.Context(), hi(), nil)
	if llm.KindOf(err) != llm.Invalid || !strings.Contains(err.Error(), "Responses API") || !strings.Contains(err.Error(), `set wire to "auto"`) {
		t.Errorf("error = %v, want invalid: Responses API, and what to set", err)
	}
}

// TestNames sends names that collide after encoding and lets the model call each of them.
func TestNames(t *testing.T) {
	t.Parallel()
	long := "server:" + strings.Repeat("x", 80)
	all := []string{
		"bash", "a:b", "a__b", "a:_b", "a_:b", "a/b", "a.b", "a b", "ä:b", "", "unnamed", long, long + "y", strings.Repeat("z", 64), strings.Repeat("z", 65),
	}
	req := &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}
	for _, name := range all {
		req.Tools = append(req.Tools, llm.Tool{Name: name})
	}
	s := serve(t, reply{body: sse(text("a"), finish("stop"))})
	if _, err := provider(t, s, nil).Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	var wire, events []string
	seen := map[string]bool{}
	for i, tool := range s.request(t)["tools"].([]any) {
		name := tool.(map[string]any)["function"].(map[string]any)["name"].(string)
		if !valid.MatchString(name) || seen[name] {
			t.Errorf("%q becomes %q, which is invalid or a duplicate", all[i], name)
		}
		seen[name] = true
		wire = append(wire, name)
		events = append(events, calls(fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":%q,"arguments":"{}"}}`, i, i, name)))
	}
	for i, name := range []string{"bash", "", "a__b"} {
		if at := []int{0, 0, 2}[i]; name != "" && wire[at] != name {
			t.Errorf("%q becomes %q, though it was fine", name, wire[at])
		}
	}
	events = append(events, calls(`{"index":99,"id":"n","function":{"name":"nobody_offered","arguments":"{}"}}`), finish("tool_calls"))
	next := serve(t, reply{body: sse(events...)})
	res, err := provider(t, next, nil).Chat(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	for _, u := range res.Uses {
		back = append(back, u.Name)
	}
	if diff := cmp.Diff(append(append([]string{}, all...), "nobody_offered"), back); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	header := map[string]string{"Content-Type": "application/json"}
	tests := []struct {
		name  string
		reply reply
		want  [][]float32
		kind  llm.Kind
	}{
		{name: "out of order", reply: reply{body: `{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`}, want: [][]float32{{1, 2}, {3, 4}}},
		{name: "too few", reply: reply{body: `{"data":[{"index":0,"embedding":[1,2]}]}`}, kind: llm.Unavailable},
		{name: "repeated", reply: reply{body: `{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]}`}, kind: llm.Unavailable},
		{name: "out of range", reply: reply{body: `{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,2]}]}`}, kind: llm.Unavailable},
		{name: "different lengths", reply: reply{body: `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`}, kind: llm.Unavailable},
		{name: "empty", reply: reply{body: `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`}, kind: llm.Unavailable},
		{name: "not JSON", reply: reply{body: `oops`}, kind: llm.WrongAddress},
		{name: "key in a 200", reply: reply{body: `{"detail":"Invalid API key"}`}, kind: llm.Unauthorized},
		{name: "refused", reply: reply{status: 401, body: `{"error":{"message":"no"}}`}, kind: llm.Unauthorized},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.reply.header = header
			s := serve(t, tt.reply)
			got, err := provider(t, s, nil).Embed(t.Context(), []string{"a", ""})
			if tt.kind != "" {
				if err == nil || llm.KindOf(err) != tt.kind {
					t.Fatalf("error = %v, want %s", err, tt.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			if body := s.request(t); body["model"] != "e" || !cmp.Equal(body["input"], []any{"a", " "}) {
				t.Errorf("request = %v", body)
			}
		})
	}
	t.Run("not configured", func(t *testing.T) {
		t.Parallel()
		p := provider(t, serve(t, reply{}), func(o *openai.Options) { o.EmbeddingModel = "" })
		if _, err := p.Embed(t.Context(), []string{"a"}); llm.KindOf(err) != llm.Invalid {
			t.Errorf("error = %v, want invalid", err)
		}
	})
	t.Run("nothing to do", func(t *testing.T) {
		t.Parallel()
		got, err := provider(t, serve(t, reply{}), nil).Embed(t.Context(), nil)
		if err != nil || len(got) != 0 {
			t.Errorf("vectors = %v, %v", got, err)
		}
	})
}

// TestNamesOfProperties: a server that does not accept the names of a tool's properties is sent others, also in the
// history, and the calls of the model have the tool's own.
func TestNamesOfProperties(t *testing.T) {
	t.Parallel()
	const own, wire = `{"filter[x]":[{"$top":2}]}`, `{"filter_x_":[{"_top":2}]}`
	req := &llm.Request{
		Messages: []llm.Message{
			{Role: llm.User, Text: "hi"},
			{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: "c1", Name: "s:find", Args: json.RawMessage(own)}}},
			{Role: llm.User, Result: &llm.ToolResult{ID: "c1", Name: "s:find", Text: "none"}},
			{Role: llm.User, Text: "again"},
		},
		Tools: []llm.Tool{{Name: "s:find", Schema: json.RawMessage(`{"type":"object","properties":{"filter[x]":{"type":"array","items":{"type":"object","properties":{"$top":{"type":"integer"}}}}}}`)}},
	}
	for name, c := range map[string]struct {
		answer string
		change func(*openai.Options)
	}{
		"chat":      {sse(calls(fmt.Sprintf(`{"index":0,"id":"c2","function":{"name":"s__find","arguments":%q}}`, wire)), finish("tool_calls")), nil},
		"text":      {sse(text(fmt.Sprintf(`<tool_call>{"name":"s__find","arguments":%s}</tool_call>`, wire)), finish("stop")), nil},
		"responses": {named(created, added(0, "s__find"), args(0, wire), finished(0, "s__find", wire), ended("completed")), wireResponses},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: c.answer})
			res, err := provider(t, s, c.change).Chat(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Uses) != 1 || res.Uses[0].Name != "s:find" || string(res.Uses[0].Args) != own {
				t.Errorf("calls: %+v", res.Uses)
			}
			sent, err := json.Marshal(s.request(t))
			if err != nil {
				t.Fatal(err)
			}
			said, err := json.Marshal(wire)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(sent), `"arguments":`+string(said)) || strings.Contains(string(sent), `"filter[x]":`) || strings.Contains(string(sent), `"$top":`) {
				t.Errorf("sent: %s", sent)
			}
		})
	}
	s := serve(t, reply{body: sse(text("a"), finish("stop"))})
	full, ok := dialect.Named("openai")
	if !ok {
		t.Fatal("no dialect")
	}
	if _, err := provider(t, s, func(o *openai.Options) { o.Dialect, o.Wire = full, openai.WireChat }).Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if sent, err := json.Marshal(s.request(t)); err != nil || !strings.Contains(string(sent), `"filter[x]":`) || strings.Contains(string(sent), "filter_x_") {
		t.Errorf("a server that takes every name is sent %s, %v", sent, err)
	}
}
