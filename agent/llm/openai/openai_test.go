package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

const key = "sk-very-secret"

// server plays one prepared answer, byte for byte, and records the request.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []map[string]any
	header http.Header
}

type reply struct {
	status int
	header map[string]string
	body   string
	abort  bool // the connection is closed after the body
}

func serve(t *testing.T, r reply) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		var body map[string]any
		if err := json.Unmarshal(data, &body); err != nil {
			t.Errorf("request is not JSON: %v", err)
		}
		s.mu.Lock()
		s.bodies, s.header = append(s.bodies, body), req.Header.Clone()
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		for k, v := range r.header {
			w.Header().Set(k, v)
		}
		if r.status != 0 {
			w.WriteHeader(r.status)
		}
		for i := range len(r.body) {
			_, _ = io.WriteString(w, r.body[i:i+1])
			if i%7 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
		if r.abort {
			c := http.NewResponseController(w)
			_ = c.Flush()
			if conn, _, err := c.Hijack(); err == nil {
				_ = conn.Close()
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) request(t *testing.T) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) != 1 {
		t.Fatalf("server was asked %d times, want once", len(s.bodies))
	}
	return s.bodies[0]
}

func provider(t *testing.T, s *server, change func(*openai.Options)) *openai.Provider {
	t.Helper()
	o := openai.Options{Name: "main", BaseURL: s.URL + "/v1/", Key: key, Model: "m", EmbeddingModel: "e", HTTPClient: s.Client()}
	if change != nil {
		change(&o)
	}
	p, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func hi() *llm.Request {
	return &llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "hi"}},
		Tools:    []llm.Tool{{Name: "read"}, {Name: "github:create_issue"}},
	}
}

// sse encodes events like a well-behaved server.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func text(s string) string { return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, s) }

func finish(s string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, s)
}

func calls(s string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + s + `]}}]}`
}

const done = "[DONE]"

func TestStreams(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		text       string
		uses       []string
		stop       llm.Stop
	}{
		{name: "text", body: sse(text("Hel"), text("lo"), finish("stop"), done), text: "Hello", stop: llm.StopEnd},
		{name: "no DONE", body: sse(text("Hello"), finish("stop")), text: "Hello", stop: llm.StopEnd},
		{name: "no empty line at the end", body: "data: " + text("a") + "\n\ndata: " + finish("stop"), text: "a", stop: llm.StopEnd},
		{name: "CRLF", body: strings.ReplaceAll(sse(text("a"), finish("stop"), done), "\n", "\r\n"), text: "a", stop: llm.StopEnd},
		{name: "CR", body: strings.ReplaceAll(sse(text("a"), finish("stop"), done), "\n", "\r"), text: "a", stop: llm.StopEnd},
		{name: "no space after the colon, mark in front", body: "\xEF\xBB\xBFdata:" + text("a") + "\n\ndata:" + finish("stop") + "\n\n", text: "a", stop: llm.StopEnd},
		{name: "no empty lines", body: "data: " + text("a") + "\ndata: " + text("b") + "\ndata: " + finish("stop") + "\ndata: [DONE]\n", text: "ab", stop: llm.StopEnd},
		{name: "event over several data lines", body: "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"a\"}}]}\n\n" + sse(finish("stop")), text: "a", stop: llm.StopEnd},
		{name: "many comments", body: strings.Repeat(": ping\n\n", 700) + "event: message\nid: 1\nretry: 5\n" + sse(text("a"), finish("stop"), done), text: "a", stop: llm.StopEnd},
		{name: "error null first", body: sse(`{"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]}`, finish("stop")), text: "a", stop: llm.StopEnd},
		{name: "other choices are left out", body: sse(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, text("a"), finish("stop")), text: "a", stop: llm.StopEnd},
		{name: "content in parts", body: sse(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}]}}]}`, finish("stop")), text: "a", stop: llm.StopEnd},
		{name: "whole JSON", body: `{"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`, text: "a", stop: llm.StopEnd},
		{
			name: "whole JSON with calls", body: `{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"1","function":{"name":"read","arguments":"{}"}},{"id":"2","function":{"name":"read","arguments":{"a":1}}}]},"finish_reason":"tool_calls"}]}`,
			uses: []string{`1 read {}`, `2 read {"a":1}`}, stop: llm.StopTools,
		},
		{name: "text of completions", body: sse(`{"object":"text_completion","choices":[{"index":0,"text":"Hel","finish_reason":null}]}`, `{"choices":[{"text":"lo","finish_reason":"stop"}]}`, done), text: "Hello", stop: llm.StopEnd},
		{name: "text of completions beside an empty delta", body: sse(`{"choices":[{"index":0,"delta":{"role":"assistant"},"text":"Hel"}]}`, `{"choices":[{"text":"lo","delta":{"content":""},"finish_reason":"length"}]}`), text: "Hello", stop: llm.StopLength},
		{name: "text beside the same delta", body: sse(`{"choices":[{"index":0,"delta":{"content":"a"},"text":"a"}]}`, finish("stop")), text: "a", stop: llm.StopEnd},
		{name: "text of completions as a whole", body: `{"object":"text_completion","choices":[{"index":0,"text":"Hello","finish_reason":"stop"}]}`, text: "Hello", stop: llm.StopEnd},
		{name: "half characters in text of completions", body: sse(`{"choices":[{"text":"a\ud83d"}]}`, `{"choices":[{"text":"\ude00b"}]}`, finish("stop")), text: "a😀b", stop: llm.StopEnd},
		{name: "text that is no text", body: sse(`{"choices":[{"text":null,"delta":{"content":"a"}}]}`, `{"choices":[{"text":{"x":1},"delta":{"content":"b"}}]}`, finish("stop")), text: "ab", stop: llm.StopEnd},
		{name: "length", body: sse(text("a"), finish("length")), text: "a", stop: llm.StopLength},
		{name: "content filter", body: sse(text("a"), finish("content_filter")), text: "a", stop: llm.StopRefusal},
		{name: "refusal", body: sse(`{"choices":[{"delta":{"refusal":"I will not."}}]}`, finish("stop")), text: "I will not.", stop: llm.StopRefusal},
		{name: "content filter as error", body: sse(text("a"), `{"error":{"message":"no","type":"invalid_request_error","code":"content_filter"}}`), text: "a", stop: llm.StopRefusal},
		{
			name: "parallel calls by index", body: sse(
				calls(`{"index":0,"id":"1","type":"function","function":{"name":"read","arguments":""}}`),
				calls(`{"index":0,"function":{"arguments":"{\"path\":"}}`),
				calls(`{"index":1,"id":"2","type":"function","function":{"name":"github__create_issue","arguments":""}}`),
				calls(`{"index":1,"function":{"arguments":"{\"b\""}},{"index":0,"function":{"arguments":"\"a\"}"}}`),
				calls(`{"index":1,"function":{"arguments":":1}"}}`), finish("tool_calls"), done),
			uses: []string{`1 read {"path":"a"}`, `2 github:create_issue {"b":1}`}, stop: llm.StopTools,
		},
		{
			name: "name repeated in every chunk", body: sse(
				calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\""}}`), calls(`{"index":0,"id":"1","function":{"name":"read","arguments":":1}"}}`), finish("tool_calls")),
			uses: []string{`1 read {"a":1}`}, stop: llm.StopTools,
		},
		{
			name: "name in pieces", body: sse(
				calls(`{"index":0,"id":"1","function":{"name":"re"}}`), calls(`{"index":0,"function":{"name":"ad"}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`), finish("tool_calls")),
			uses: []string{`1 read {}`}, stop: llm.StopTools,
		},
		{
			name: "whole calls, all with index 0", body: sse(
				calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":1}"}}`), calls(`{"index":0,"id":"2","function":{"name":"read","arguments":"{\"a\":1}"}}`), finish("stop")),
			uses: []string{`1 read {"a":1}`, `2 read {"a":1}`}, stop: llm.StopTools,
		},
		{
			name: "one call sent twice", body: sse(
				calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":1}"}}`), calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":1}"}}`), finish("stop")),
			uses: []string{`1 read {"a":1}`}, stop: llm.StopTools,
		},
		{
			name: "no index", body: sse(
				calls(`{"id":"1","function":{"name":"read","arguments":"{\"a\""}}`), calls(`{"function":{"arguments":":1}"}}`), calls(`{"id":"2","function":{"name":"read","arguments":"{}"}}`), finish("tool_calls")),
			uses: []string{`1 read {"a":1}`, `2 read {}`}, stop: llm.StopTools,
		},
		{
			name: "malformed arguments", body: sse(calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":"}}`), finish("tool_calls")),
			uses: []string{`1 read {"a":`}, stop: llm.StopTools,
		},
		{name: "no arguments", body: sse(calls(`{"index":0,"id":"1","function":{"name":"read"}}`), finish("tool_calls")), uses: []string{`1 read {}`}, stop: llm.StopTools},
		{name: "cut after the reason to stop", body: sse(text("a"), finish("stop")) + "data: {\"usa", text: "a", stop: llm.StopEnd},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: tt.body})
			streamed := ""
			res, err := provider(t, s, nil).Chat(t.Context(), hi(), func(d string) { streamed += d })
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

func TestUsageAndCost(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: sse(text("a"), finish("stop"),
		`{"model":"m-2026","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":500,"prompt_tokens_details":{"cached_tokens":800}}}`, done)})
	p := provider(t, s, func(o *openai.Options) { o.Tariff = cost.FixedTariff(2, 2, 2, 8) })
	res, err := p.Chat(t.Context(), hi(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &llm.Response{
		Text: "a", Stop: llm.StopEnd, Usage: llm.Usage{Input: 1000, CachedInput: 800, Output: 500}, Provider: "main", Model: "m-2026", USD: 0.006,
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if got := s.request(t)["stream_options"]; !cmp.Equal(got, map[string]any{"include_usage": true}) {
		t.Errorf("stream_options = %v", got)
	}
}

func TestMissingAndRepeatedIDs(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: sse(
		calls(`{"index":0,"id":"x","function":{"name":"read","arguments":"{}"}}`), calls(`{"index":1,"id":"x","function":{"name":"read","arguments":"{\"a\":1}"}}`),
		calls(`{"index":2,"function":{"name":"read","arguments":"{\"a\":2}"}}`), finish("tool_calls"))})
	res, err := provider(t, s, nil).Chat(t.Context(), hi(), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, u := range res.Uses {
		if u.ID == "" || seen[u.ID] {
			t.Errorf("id %q is empty or repeated", u.ID)
		}
		seen[u.ID] = true
	}
	if len(seen) != 3 || !seen["x"] {
		t.Errorf("ids = %v, want three, x kept", seen)
	}
}

func TestVendorFieldsComeBack(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: sse(
		calls(`{"index":0,"id":"1","type":"function","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}`), finish("tool_calls"))})
	res, err := provider(t, s, nil).Chat(t.Context(), hi(), nil)
	if err != nil {
		t.Fatal(err)
	}
	back := func(url string) any {
		t.Helper()
		next := serve(t, reply{body: sse(text("a"), finish("stop"))})
		p := provider(t, next, func(o *openai.Options) {
			if url != "" { // the same server: a transport may reuse the connection for its successor
				o.BaseURL = url
				o.HTTPClient = &http.Client{Transport: redirector{host: strings.TrimPrefix(next.URL, "http://"), next: next.Client().Transport}}
			}
		})
		req := hi()
		req.System = "be short"
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Uses: res.Uses},
			llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "1", Name: "read"}})
		if _, err := p.Chat(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		messages := next.request(t)["messages"].([]any)
		call := messages[2].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)
		if call["id"] != "1" || messages[3].(map[string]any)["content"] != "(no output)" {
			t.Errorf("messages = %v", messages)
		}
		return call["extra_content"]
	}
	if got := back(s.URL); !cmp.Equal(got, map[string]any{"google": map[string]any{"thought_signature": "sig"}}) {
		t.Errorf("extra_content sent back to its server = %v", got)
	}
	if got := back(""); got != nil {
		t.Errorf("extra_content sent to another server: %v", got)
	}
}

// redirector sends every request to another host.
type redirector struct {
	host string
	next http.RoundTripper
}

func (r redirector) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.host
	return r.next.RoundTrip(req)
}
