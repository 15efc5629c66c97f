package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// named encodes events as OpenAI does, with the type also as the event's name.
func named(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var head struct {
			Type string `json:"type"`
		}
		if json.Unmarshal([]byte(e), &head) == nil && head.Type != "" {
			b.WriteString("event: " + head.Type + "\n")
		}
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

const created = `{"type":"response.created","response":{"id":"r","status":"in_progress","model":"m-1","output":[],"error":null,"instructions":"x"}}`

// said is an event with a piece of the message at an index.
func said(index int, s string) string {
	return fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"msg_%d","output_index":%d,"content_index":0,"delta":%q}`, index, index, s)
}

func added(index int, name string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":%q,"arguments":""}}`, index, index, index, name)
}

func args(index int, s string) string {
	return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","item_id":"fc_%d","output_index":%d,"delta":%q}`, index, index, s)
}

func finished(index int, name, args string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":%q,"arguments":%q,"status":"completed"}}`, index, index, index, name, args)
}

// ended is the last event; output are the items of the whole response.
func ended(status string, output ...string) string {
	return fmt.Sprintf(`{"type":"response.%s","response":{"status":%q,"output":[%s]}}`, status, status, strings.Join(output, ","))
}

func wireResponses(o *openai.Options) { o.Wire = openai.WireResponses }

func TestResponseStreams(t *testing.T) {
	t.Parallel()
	msg := `{"type":"message","id":"msg_0","content":[{"type":"output_text","text":"Hello"}]}`
	tests := []struct {
		name, body string
		text       string
		uses       []string
		stop       llm.Stop
	}{
		{name: "text", body: named(created, said(0, "Hel"), said(0, "lo"), ended("completed", msg)), text: "Hello", stop: llm.StopEnd},
		{name: "no list at the end", body: sse(created, said(0, "Hello"), ended("completed")), text: "Hello", stop: llm.StopEnd},
		{name: "text at the end only", body: sse(created, ended("completed", msg)), text: "Hello", stop: llm.StopEnd},
		{name: "text when the part is done", body: sse(`{"type":"response.output_text.done","item_id":"msg_0","output_index":0,"text":"Hello"}`, ended("completed", msg)), text: "Hello", stop: llm.StopEnd},
		{name: "whole parts after pieces", body: sse(said(0, "Hello"), `{"type":"response.output_text.done","item_id":"msg_0","output_index":0,"text":"Hello"}`, `{"type":"response.output_item.done","output_index":0,"item":`+msg+`}`, ended("completed", msg)), text: "Hello", stop: llm.StopEnd},
		{name: "two messages", body: sse(said(0, "Look."), said(2, "Done"), said(2, "."), ended("completed")), text: "Look.\n\nDone.", stop: llm.StopEnd},
		{name: "DONE instead of the end", body: sse(created, said(0, "Hello"), done), text: "Hello", stop: llm.StopEnd},
		{name: "keepalives and half characters", body: sse(": keepalive", created, said(0, "x"), "", "ping") + "event: ping\ndata:\n\n" +
			sse(`{"type":"response.output_text.delta","output_index":0,"delta":"\ud83d"}`, `{"type":"response.output_text.delta","output_index":0,"delta":"\ude00"}`, ended("completed")), text: "x😀", stop: llm.StopEnd},
		{name: "DONE after the end", body: sse(said(0, "a"), ended("completed"), done), text: "a", stop: llm.StopEnd},
		{name: "cut after the end", body: sse(said(0, "a"), ended("completed")) + "data: {", text: "a", stop: llm.StopEnd},
		{name: "unknown events and items", body: sse(`{"type":"response.audio.delta","delta":{"x":1}}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"w"}}`, `{"type":"keepalive"}`, `{"x":1}`, said(1, "a"), ended("completed", `{"type":"web_search_call"}`)), text: "a", stop: llm.StopEnd},
		{name: "whole JSON", body: `{"object":"response","status":"completed","error":null,"output":[` + msg + `]}`, text: "Hello", stop: llm.StopEnd},
		{name: "length", body: sse(said(0, "Hel"), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`), text: "Hel", stop: llm.StopLength},
		{name: "content filter", body: sse(said(0, "a"), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), text: "a", stop: llm.StopRefusal},
		{name: "content filter as error", body: named(said(0, "a"), `{"type":"error","code":"content_filter","message":"no"}`), text: "a", stop: llm.StopRefusal},
		{name: "refusal", body: sse(`{"type":"response.refusal.delta","item_id":"msg_0","output_index":0,"delta":"I will "}`, `{"type":"response.refusal.delta","item_id":"msg_0","output_index":0,"delta":"not."}`, `{"type":"response.refusal.done","item_id":"msg_0","output_index":0,"refusal":"I will not."}`, ended("completed")), text: "I will not.", stop: llm.StopRefusal},
		{name: "refusal at the end only", body: sse(ended("completed", `{"type":"message","id":"x","content":[{"type":"refusal","refusal":"No."}]}`)), text: "No.", stop: llm.StopRefusal},
		{
			name: "calls", body: named(created, said(0, "Look."), added(1, "read"), args(1, `{"path":`), args(1, `"a"}`), finished(1, "read", `{"path":"a"}`),
				added(2, "github__create_issue"), args(2, "{}"), ended("completed")),
			text: "Look.", uses: []string{`call_1 read {"path":"a"}`, `call_2 github:create_issue {}`}, stop: llm.StopTools,
		},
		{
			name: "out of order", body: sse(args(2, `{"b`), finished(3, "read", `{"c":3}`), added(2, "read"), args(1, `{"a":`), args(2, `":2}`), added(1, "read"), args(1, `1}`), ended("completed")),
			uses: []string{`call_1 read {"a":1}`, `call_2 read {"b":2}`, `call_3 read {"c":3}`}, stop: llm.StopTools,
		},
		{
			name: "ids change", body: sse(added(0, "read"), `{"type":"response.function_call_arguments.delta","item_id":"other","output_index":0,"delta":"{\"a\":1}"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"third","call_id":"call_0","name":"read","arguments":"{\"a\":1}"}}`,
				ended("completed", `{"type":"function_call","id":"fourth","call_id":"call_0","name":"read","arguments":"{\"a\":1}"}`)),
			uses: []string{`call_0 read {"a":1}`}, stop: llm.StopTools,
		},
		{
			name: "all with index 0", body: sse(
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"a","call_id":"1","name":"read"}}`, `{"type":"response.function_call_arguments.delta","item_id":"a","output_index":0,"delta":"{\"a\":1}"}`,
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"b","call_id":"2","name":"read"}}`, `{"type":"response.function_call_arguments.done","item_id":"b","output_index":0,"arguments":"{\"a\":2}"}`, ended("completed")),
			uses: []string{`1 read {"a":1}`, `2 read {"a":2}`}, stop: llm.StopTools,
		},
		{
			name: "neither ids nor indexes", body: sse(`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"1","name":"read"}}`, `{"type":"response.function_call_arguments.delta","delta":"{\"a\":"}`, `{"type":"response.function_call_arguments.delta","delta":"1}"}`,
				`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"2","name":"read"}}`, `{"type":"response.function_call_arguments.delta","delta":"{}"}`, ended("completed")),
			uses: []string{`1 read {"a":1}`, `2 read {}`}, stop: llm.StopTools,
		},
		{
			name: "calls at the end only", body: sse(ended("completed", `{"type":"function_call","call_id":"1","name":"read","arguments":"{}"}`, `{"type":"function_call","call_id":"2","name":"read","arguments":{"a":1}}`)),
			uses: []string{`1 read {}`, `2 read {"a":1}`}, stop: llm.StopTools,
		},
		{
			name: "the list brings a lost call", body: sse(finished(1, "read", `{"a":1}`), ended("completed", `{"type":"function_call","id":"fc_0","call_id":"call_0","name":"read","arguments":"{}"}`, `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":""}`)),
			uses: []string{`call_0 read {}`, `call_1 read {"a":1}`}, stop: llm.StopTools,
		},
		{name: "no arguments", body: sse(added(0, "read"), ended("completed")), uses: []string{`call_0 read {}`}, stop: llm.StopTools},
		{name: "malformed arguments", body: sse(added(0, "read"), args(0, `{"a":`), ended("completed")), uses: []string{`call_0 read {"a":`}, stop: llm.StopTools},
		{name: "call cut by length", body: sse(added(0, "read"), args(0, `{"a":`), added(1, "read"), ended("incomplete")), uses: []string{`call_0 read {"a":`}, stop: llm.StopLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: tt.body})
			streamed := ""
			res, err := provider(t, s, wireResponses).Chat(t.Context(), hi(), func(d string) { streamed += d })
			if err != nil {
				t.Fatal(err)
			}
			if res.Text != tt.text || streamed != tt.text || res.Stop != tt.stop {
				t.Errorf("text %q, streamed %q, stop %s; want %q and %s", res.Text, streamed, res.Stop, tt.text, tt.stop)
			}
			var uses []string
			for _, u := range res.Uses {
				uses = append(uses, fmt.Sprintf("%s %s %s", u.ID, u.Name, u.Args))
			}
			if diff := cmp.Diff(tt.uses, uses); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponseFailures(t *testing.T) {
	t.Parallel()
	failed := func(code string) string {
		return fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":"it failed"},"output":[]}}`, code)
	}
	tests := []struct {
		name     string
		reply    reply
		kind     llm.Kind
		after    time.Duration
		streamed bool
		contains string
	}{
		{name: "wrong key", reply: reply{status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + key + `."}}`}, kind: llm.Unauthorized, contains: "[redacted]"},
		{name: "rate limit", reply: reply{status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"error":{"message":"slow down"}}`}, kind: llm.RateLimited, after: 7 * time.Second, contains: "slow down"},
		{name: "no such endpoint", reply: reply{status: 404, body: `{"detail":"Not Found"}`}, kind: llm.WrongAddress, contains: "Not Found"},
		{name: "too long", reply: reply{status: 400, body: `{"error":{"message":"x","code":"context_length_exceeded"}}`}, kind: llm.TooLong},
		{name: "overloaded", reply: reply{status: 503}, kind: llm.Unavailable},
		{name: "empty stream", reply: reply{}, kind: llm.Truncated, contains: "without response.completed"},
		{name: "cut", reply: reply{body: sse(created, said(0, "x")), abort: true}, kind: llm.Truncated, streamed: true},
		{name: "ends without the end", reply: reply{body: sse(created, said(0, "x"))}, kind: llm.Truncated, streamed: true, contains: "without response.completed"},
		{name: "ends after a call", reply: reply{body: sse(added(0, "read"), finished(0, "read", "{}"))}, kind: llm.Truncated},
		{name: "cut within an event", reply: reply{body: sse(said(0, "x")) + `data: {"type":"response.comp`}, kind: llm.Truncated, streamed: true},
		{name: "event of another shape", reply: reply{body: sse(`{"type":7}`)}, kind: llm.Truncated, contains: "read event"},
		{name: "item of another shape", reply: reply{body: sse(`{"type":"response.output_item.added","item":7}`)}, kind: llm.Truncated},
		{name: "delta of another shape", reply: reply{body: sse(`{"type":"response.output_text.delta","delta":7}`)}, kind: llm.Truncated},
		{name: "response of another shape", reply: reply{body: sse(`{"type":"response.completed","response":7}`)}, kind: llm.Truncated},
		{name: "list of another shape", reply: reply{body: sse(`{"type":"response.completed","response":{"output":[7]}}`)}, kind: llm.Truncated},
		{name: "whole JSON of another shape", reply: reply{body: `{"object":"response","output":7}`}, kind: llm.Truncated},
		{name: "array", reply: reply{body: `[1]`}, kind: llm.Truncated},
		{name: "failed", reply: reply{body: sse(said(0, "x"), failed("server_error"))}, kind: llm.Unavailable, streamed: true, contains: "it failed (server_error)"},
		{name: "failed by rate limit", reply: reply{body: sse(failed("rate_limit_exceeded"))}, kind: llm.RateLimited},
		{name: "failed, invalid", reply: reply{body: sse(failed("invalid_prompt"))}, kind: llm.Invalid},
		{name: "failed, too long", reply: reply{body: sse(failed("context_length_exceeded"))}, kind: llm.TooLong},
		{name: "failed without a reason", reply: reply{body: sse(`{"type":"response.failed","response":{"error":null}}`)}, kind: llm.Unavailable, contains: "status failed"},
		{name: "cancelled", reply: reply{body: `{"object":"response","status":"cancelled"}`}, kind: llm.Unavailable, contains: "cancelled"},
		{name: "error event", reply: reply{body: named(`{"type":"error","code":"server_error","message":"oops ` + key + `","param":null}`)}, kind: llm.Unavailable, contains: "oops [redacted]"},
		{name: "error event without its name", reply: reply{body: sse(`{"type":"error","code":"rate_limit_exceeded","message":"slow"}`)}, kind: llm.RateLimited, contains: "slow"},
		{name: "error within an event", reply: reply{body: named(`{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`)}, kind: llm.Invalid, contains: "bad"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.reply)
			_, err := provider(t, s, wireResponses).Chat(t.Context(), hi(), func(string) {})
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("error = %v, want an llm.Error", err)
			}
			if e.Kind != tt.kind || e.RetryAfter != tt.after || e.Streamed != tt.streamed || e.Provider != "main" {
				t.Errorf("error = %+v, want kind %s, retry after %s, streamed %t", e, tt.kind, tt.after, tt.streamed)
			}
			if !strings.Contains(err.Error(), tt.contains) || strings.Contains(err.Error(), key) {
				t.Errorf("error text = %q, want %q and no key", err, tt.contains)
			}
			s.request(t) // no retries
		})
	}
}

func TestTooManyItems(t *testing.T) {
	t.Parallel()
	many := func(n int, kind string) string {
		var events []string
		for i := range n {
			events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":%q,"id":"x%d"}}`, i, kind, i))
		}
		return sse(append(events, ended("completed"))...)
	}
	tests := []struct{ body, contains string }{
		{many(129, "function_call"), "more than 128 tool calls"},
		{many(1025, "reasoning"), "more than 1024 items"},
		{sse(ended("completed", `{"type":"reasoning"}`+strings.Repeat(`,{"type":"reasoning"}`, 1024))), "more than 1024 items"},
	}
	for _, tt := range tests {
		_, err := pipedResponses(t, io.NopCloser(strings.NewReader(tt.body))).Chat(t.Context(), hi(), nil)
		if llm.KindOf(err) != llm.Invalid || !strings.Contains(err.Error(), tt.contains) {
			t.Errorf("error = %v, want %q", err, tt.contains)
		}
	}
}

// pipedResponses is pipedProvider with the other wire.
func pipedResponses(t *testing.T, body io.ReadCloser) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		Name: "main", BaseURL: "http://model.invalid/v1", Model: "m", Wire: openai.WireResponses, Idle: time.Minute,
		HTTPClient: &http.Client{Transport: piped{body}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestResponseSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for range 3 { // slow, but each within the limit; then silent
				<-time.After(50 * time.Second)
				_, _ = io.WriteString(w, sse(said(0, "a")))
			}
		})
		p := pipedResponses(t, r)
		var e *llm.Error
		_, err := p.Chat(t.Context(), hi(), func(string) { <-time.After(2 * time.Minute) })
		if !errors.As(err, &e) || e.Kind != llm.Timeout || !e.Streamed {
			t.Errorf("error = %v, want timeout after text", err)
		}
	})
}

func TestResponseUsageAndCost(t *testing.T) {
	t.Parallel()
	body := sse(created, said(0, "a"), `{"type":"response.completed","response":{"status":"completed","model":"m-2","usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":800},"output_tokens":500}}}`)
	p := provider(t, serve(t, reply{body: body}), func(o *openai.Options) {
		o.Wire, o.Tariff = openai.WireResponses, cost.FixedTariff(2, 0.5, 2, 8)
	})
	res, err := p.Chat(t.Context(), hi(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &llm.Response{
		Text: "a", Stop: llm.StopEnd, Usage: llm.Usage{Input: 1000, CachedInput: 800, Output: 500}, Provider: "main", Model: "m-2", USD: 0.0048,
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestResponseRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: sse(ended("completed"))})
	long := strings.Repeat("i", 70)
	req := &llm.Request{
		System: "be short", User: long, MaxTokens: 7,
		Tools: []llm.Tool{{Name: "github:x", Description: "makes x", Schema: json.RawMessage(`{"type":"object","$defs":{"a":{"const":"x"}},"properties":{"a":{"$ref":"#/$defs/a"}}}`)}, {Name: "bare"}},
		Messages: []llm.Message{
			{Role: llm.User, Text: "do"},
			{Role: llm.Assistant, Text: "I do.", Uses: []llm.ToolUse{{ID: long, Name: "github:x", Args: json.RawMessage(`{"a":`)}, {ID: "2", Name: "bare"}}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: long, Name: "github:x", Text: " \n"}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "2", Name: "bare", Text: "it is full", Error: true}},
			{Role: llm.Assistant},
			{Role: llm.ToolRole, Text: "lost"},
			{Role: llm.User, Text: "go on"},
		},
	}
	p := provider(t, s, func(o *openai.Options) { o.Model, o.Wire = "gpt-5", openai.WireResponses })
	if _, err := p.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	got := s.request(t)
	id, user := got["input"].([]any)[2].(map[string]any)["call_id"], got["safety_identifier"]
	if id == long || len(id.(string)) > 40 || user == long || len(user.(string)) > 64 {
		t.Errorf("call_id = %v, user %v, want short ones", id, user)
	}
	say := func(role, text string) any { return map[string]any{"type": "message", "role": role, "content": text} }
	call := func(id any, name, args string) any {
		return map[string]any{"type": "function_call", "call_id": id, "name": name, "arguments": args}
	}
	want := map[string]any{
		"model": "gpt-5", "stream": true, "store": false, "include": []any{"reasoning.encrypted_content"}, "instructions": "be short",
		"max_output_tokens": 16.0, "safety_identifier": user, "prompt_cache_key": user,
		"input": []any{
			say("user", "do"), say("assistant", "I do."), call(id, "github__x", `{"not_an_object":"{\"a\":"}`), call("2", "bare", "{}"),
			map[string]any{"type": "function_call_output", "call_id": id, "output": "(no output)"},
			map[string]any{"type": "function_call_output", "call_id": "2", "output": "[the tool reports a failure]\nit is full"},
			say("assistant", "(empty)"), say("user", "lost"), say("user", "go on"),
		},
		"tools": []any{
			map[string]any{"type": "function", "strict": false, "name": "github__x", "description": "makes x", "parameters": map[string]any{
				"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string", "enum": []any{"x"}}},
			}},
			map[string]any{"type": "function", "strict": false, "name": "bare", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// TestNoReasoningIsAskedOf checks models that cannot return reasoning: they would reject the request.
func TestNoReasoningIsAskedOf(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"gpt-4o", "llama3.1", "gpt-5-chat-latest", "grok-4"} { // grok-4 only at xAI
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: sse(ended("completed"))})
			p := provider(t, s, func(o *openai.Options) { o.Model, o.Wire, o.MaxTokens = model, openai.WireResponses, 99 })
			if _, err := p.Chat(t.Context(), hi(), nil); err != nil {
				t.Fatal(err)
			}
			if got := s.request(t); got["include"] != nil || got["max_output_tokens"] != 99.0 {
				t.Errorf("include = %v, max_output_tokens = %v", got["include"], got["max_output_tokens"])
			}
		})
	}
}

// plays answers one request after the other and records path and body of each.
type plays struct {
	*httptest.Server
	mu     sync.Mutex
	paths  []string
	bodies [][]byte
}

func play(t *testing.T, replies ...reply) *plays {
	t.Helper()
	s := &plays{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		s.mu.Lock()
		n := len(s.paths)
		s.paths, s.bodies = append(s.paths, req.URL.Path), append(s.bodies, data)
		s.mu.Unlock()
		if n >= len(replies) {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if replies[n].status != 0 {
			w.WriteHeader(replies[n].status)
		}
		_, _ = io.WriteString(w, replies[n].body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *plays) provider(t *testing.T, change func(*openai.Options)) *openai.Provider {
	t.Helper()
	return provider(t, &server{Server: s.Server}, change)
}

func (s *plays) asked() ([]string, [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths, s.bodies
}

// items returns the input of a request.
func items(t *testing.T, body []byte) []any {
	t.Helper()
	var in struct {
		Input []any `json:"input"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	return in.Input
}

// answered is a conversation in which the calls of an answer have results.
func answered(res *llm.Response) *llm.Request {
	req := hi()
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Uses: res.Uses, Extra: res.Extra})
	for _, u := range res.Uses {
		req.Messages = append(req.Messages, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: u.ID, Name: u.Name, Text: "done"}})
	}
	return req
}

func TestReasoningComesBack(t *testing.T) {
	t.Parallel()
	reasoning := func(n int) string {
		return fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"e%d","status":null}`, n, n)
	}
	output := []string{
		reasoning(0), `{"type":"reasoning","id":"rs_empty","summary":[]}`, `{"type":"message","id":"msg_2","phase":"commentary","content":[{"type":"output_text","text":"Look."}]}`, reasoning(3),
		`{"type":"function_call","id":"fc_4","call_id":"call_4","name":"read","arguments":"{}"}`, `{"type":"function_call","id":"fc_5","call_id":"call_5","name":"read","arguments":"{}"}`,
	}
	var events []string
	for n, o := range output {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, n, o))
	}
	kept := func(n int) any {
		return map[string]any{
			"type": "reasoning", "id": fmt.Sprintf("rs_%d", n), "encrypted_content": fmt.Sprintf("e%d", n),
			"summary": []any{map[string]any{"type": "summary_text", "text": "s"}},
		}
	}
	call := func(n int) any {
		return map[string]any{"type": "function_call", "call_id": fmt.Sprintf("call_%d", n), "name": "read", "arguments": "{}"}
	}
	look := map[string]any{"type": "message", "role": "assistant", "content": "Look.", "phase": "commentary"}
	bare := map[string]any{"type": "message", "role": "assistant", "content": "Look."}
	tests := []struct {
		name   string
		answer string
		other  string // model of the second request
		want   []any
	}{
		{"from events", sse(append(events, ended("completed"))...), "gpt-6-sol", []any{kept(0), look, kept(3), call(4), call(5)}},
		{"from the list", sse(ended("completed", output...)), "gpt-6-sol", []any{kept(0), look, kept(3), call(4), call(5)}},
		{"another model", sse(ended("completed", output...)), "gpt-6-luna", []any{bare, call(4), call(5)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := play(t, reply{body: tt.answer}, reply{body: sse(ended("completed"))})
			res, err := s.provider(t, func(o *openai.Options) { o.Model = "gpt-6-sol" }).Chat(t.Context(), hi(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req := hi()
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Uses: res.Uses},
				llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "call_4"}}, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "call_5"}})
			if _, err := s.provider(t, func(o *openai.Options) { o.Model = tt.other }).Chat(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			_, bodies := s.asked()
			got := items(t, bodies[1])
			if diff := cmp.Diff(tt.want, got[1:len(got)-2]); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("another host", func(t *testing.T) {
		t.Parallel()
		s, next := play(t, reply{body: sse(ended("completed", output...))}), play(t, reply{body: sse(ended("completed"))})
		res, err := s.provider(t, func(o *openai.Options) { o.Model = "gpt-6-sol" }).Chat(t.Context(), hi(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req := answered(res)
		if _, err := next.provider(t, func(o *openai.Options) { o.Model = "gpt-6-sol" }).Chat(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		_, bodies := next.asked()
		if diff := cmp.Diff([]any{bare, call(4), call(5)}, items(t, bodies[0])[1:4]); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
	})
	t.Run("the server cannot read it", func(t *testing.T) {
		t.Parallel()
		s := play(t, reply{body: sse(ended("completed", output...))},
			reply{status: 400, body: `{"error":{"message":"could not be verified","code":"invalid_encrypted_content"}}`}, reply{body: sse(said(0, "ok"), ended("completed"))})
		p := s.provider(t, func(o *openai.Options) { o.Model = "gpt-6-sol" })
		res, err := p.Chat(t.Context(), hi(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req := answered(res)
		if res, err := p.Chat(t.Context(), req, nil); err != nil || res.Text != "ok" {
			t.Fatalf("answer %+v, %v", res, err)
		}
		_, bodies := s.asked()
		if diff := cmp.Diff([]any{look, call(4), call(5)}, items(t, bodies[2])[1:4]); diff != "" || len(items(t, bodies[1])) != 8 {
			t.Errorf("items (-want +got):\n%s", diff)
		}
	})
}

// TestReasoningOfAnAnswerComesBack: the reasoning before an answer without calls goes back with it in later turns, to the
// host and model that gave it, and not if the server cannot read it.
func TestReasoningOfAnAnswerComesBack(t *testing.T) {
	t.Parallel()
	const item = `{"type":"reasoning","id":"rs_0","summary":[],"encrypted_content":"e0"}`
	message := `{"type":"message","id":"msg_1","phase":"final_answer","content":[{"type":"output_text","text":"Hello"}]}`
	kept := map[string]any{"type": "reasoning", "id": "rs_0", "encrypted_content": "e0", "summary": []any{}}
	said := map[string]any{"type": "message", "role": "assistant", "content": "Hello", "phase": "final_answer"}
	bare := map[string]any{"type": "message", "role": "assistant", "content": "Hello"}
	unreadable := reply{status: 400, body: `{"error":{"message":"could not be verified","code":"invalid_encrypted_content"}}`}
	for name, tt := range map[string]struct {
		output []string
		other  string // model of the second request
		then   []reply
		want   []any
	}{
		"the same model":        {[]string{item, message}, "gpt-6-sol", nil, []any{kept, said}},
		"another model":         {[]string{item, message}, "gpt-6-luna", nil, []any{bare}},
		"nothing encrypted":     {[]string{`{"type":"reasoning","id":"rs_0","summary":[]}`, message}, "gpt-6-sol", nil, []any{said}},
		"reasoning after it":    {[]string{message, item}, "gpt-6-sol", nil, []any{said}},
		"cannot be read":        {[]string{item, message}, "gpt-6-sol", []reply{unreadable}, []any{said}},
		"neither of them given": {[]string{strings.Replace(message, `"phase":"final_answer",`, "", 1)}, "gpt-6-sol", nil, []any{bare}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, append(append([]reply{{body: sse(ended("completed", tt.output...))}}, tt.then...), reply{body: sse(ended("completed"))})...)
			res, err := s.provider(t, func(o *openai.Options) { o.Model = "gpt-6-sol" }).Chat(t.Context(), hi(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req := hi()
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Extra: res.Extra}, llm.Message{Role: llm.User, Text: "and?"})
			if _, err := s.provider(t, func(o *openai.Options) { o.Model = tt.other }).Chat(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			_, bodies := s.asked()
			got := items(t, bodies[len(bodies)-1])
			if diff := cmp.Diff(tt.want, got[1:len(got)-1]); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an answer that was cut", func(t *testing.T) {
		t.Parallel()
		s := play(t, reply{body: sse(ended("incomplete", item, message))})
		res, err := s.provider(t, func(o *openai.Options) { o.Model = "gpt-6-sol" }).Chat(t.Context(), hi(), nil)
		if err != nil || len(res.Extra) > 0 {
			t.Errorf("kept %s, %v", res.Extra, err)
		}
	})
}
