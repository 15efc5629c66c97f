package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

const key = "sk-ant-very-secret"

type reply struct {
	status int
	header map[string]string
	body   string
}

// server plays prepared answers and records the requests, byte for byte.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	header http.Header
	path   string
}

func serve(t *testing.T, r reply) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		s.mu.Lock()
		s.bodies, s.header, s.path = append(s.bodies, string(data)), req.Header.Clone(), req.URL.Path
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		for k, v := range r.header {
			w.Header().Set(k, v)
		}
		if r.status != 0 {
			w.WriteHeader(r.status)
		}
		_, _ = io.WriteString(w, r.body)
	}))
	t.Cleanup(s.Close)
	return s
}

func provider(t *testing.T, s *server, change func(*anthropic.Options)) *anthropic.Provider {
	t.Helper()
	o := anthropic.Options{Name: "main", BaseURL: s.URL + "/v1", Key: key, Model: "m-1", Tariff: cost.FixedTariff(10, 1, 12.5, 50), HTTPClient: s.Client()}
	if change != nil {
		change(&o)
	}
	p, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sse encodes events as the vendor does: each contains its type twice.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var head struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &head) // a garbled event has no type
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, e)
	}
	return b.String()
}

const (
	begin = `{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m-1-real","content":[],"stop_reason":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":40,"cache_read_input_tokens":1000,"output_tokens":1}}}`
	end   = `{"type":"message_stop"}`
)

func text(i int, s string) []string {
	return []string{
		fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, i),
		fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, i, s),
		fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i),
	}
}

func use(i int, id, name string, pieces ...string) []string {
	list := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i, id, name)}
	for _, p := range pieces {
		list = append(list, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, p))
	}
	return append(list, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func stop(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":20}}`, reason)
}

func stream(reason string, blocks ...[]string) string {
	events := []string{begin, `{"type":"ping"}`}
	for _, b := range blocks {
		events = append(events, b...)
	}
	return sse(append(events, stop(reason), end)...)
}

func hi() *llm.Request {
	return &llm.Request{
		System: "Be brief.", User: "u-1", Messages: []llm.Message{{Role: llm.User, Text: "hi"}},
		Tools: []llm.Tool{{Name: "read", Description: "reads", Schema: json.RawMessage(`{"type":"object","$defs":{"z":{"type":"string"}},"properties":{"b":{"$ref":"#/$defs/z"},"a":{"type":"integer"}},"additionalProperties":false}`)}, {Name: "github:create_issue"}},
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: stream("tool_use", text(0, "Hello "), text(1, "there."), use(2, "toolu_1", "github__create_issue", `{"title":`, `"x"}`), use(3, "toolu_1", "read"))})
	var said strings.Builder
	res, err := provider(t, s, nil).Chat(t.Context(), hi(), func(p string) { said.WriteString(p) })
	if err != nil {
		t.Fatal(err)
	}
	if said.String() != "Hello there." || res.Text != "Hello there." || res.Stop != llm.StopTools || res.Model != "m-1-real" || res.Provider != "main" {
		t.Errorf("said %q, answer %+v", said.String(), res)
	}
	if diff := cmp.Diff(llm.Usage{Input: 1140, CachedInput: 1000, Output: 20}, res.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	// 100 at 10, 40 at 12.5, 1000 at 1, 20 at 50 USD per million.
	if want := (1000 + 500 + 1000 + 1000) / 1e6; res.USD < want-1e-9 || res.USD > want+1e-9 {
		t.Errorf("cost %v, want %v", res.USD, want)
	}
	if len(res.Uses) != 2 || res.Uses[0].Name != "github:create_issue" || string(res.Uses[0].Args) != `{"title":"x"}` || string(res.Uses[1].Args) != "{}" || res.Uses[1].ID == "toolu_1" {
		t.Errorf("uses %+v", res.Uses)
	}
	if s.path != "/v1/messages" || s.header.Get("X-Api-Key") != key || s.header.Get("Authorization") != "" {
		t.Errorf("path %s, header %v", s.path, s.header)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]llm.Stop{
		"end_turn": llm.StopEnd, "stop_sequence": llm.StopEnd, "max_tokens": llm.StopLength, "model_context_window_exceeded": llm.StopLength,
		"refusal": llm.StopRefusal, "something_new": llm.StopEnd,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			res, err := provider(t, serve(t, reply{body: stream(reason, text(0, "x"))}), nil).Chat(t.Context(), hi(), nil)
			if err != nil || res.Stop != want {
				t.Errorf("%+v, %v; want %s", res, err, want)
			}
		})
	}
}

// TestRequest pins the form of a request: results are in the user's message, schemas are sent byte for byte, and the
// cache is told how far to store.
func TestRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: stream("end_turn", text(0, "x"))})
	req := hi()
	req.Messages = append(
		req.Messages,
		llm.Message{Role: llm.Assistant, Text: "Looking.", Uses: []llm.ToolUse{{ID: "c1", Name: "read", Args: json.RawMessage(`{"b":"x","a":1}`)}, {ID: "c2", Name: "read", Args: json.RawMessage(`"broken`)}}},
		llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "c1", Text: "one"}},
		llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "c2", Error: true}},
		llm.Message{Role: llm.User, Text: "go on"},
	)
	if _, err := provider(t, s, nil).Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	var got struct {
		System    []map[string]any `json:"system"`
		MaxTokens int              `json:"max_tokens"`
		Stream    bool             `json:"stream"`
		Metadata  map[string]string
		Tools     []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Role    string           `json:"role"`
			Content []map[string]any `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal([]byte(s.bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Stream || got.MaxTokens != 4096 || got.System[0]["cache_control"] == nil || got.Metadata["user_id"] != "u-1" {
		t.Errorf("request %s", s.bodies[0])
	}
	if string(got.Tools[0].Schema) != `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}` || got.Tools[1].Name != "github__create_issue" {
		t.Errorf("tools %s", s.bodies[0])
	}
	var shape []string
	for _, m := range got.Messages {
		kinds := []string{m.Role}
		for _, c := range m.Content {
			kinds = append(kinds, fmt.Sprint(c["type"]))
		}
		shape = append(shape, strings.Join(kinds, " "))
	}
	want := []string{"user text", "assistant text tool_use tool_use", "user tool_result tool_result text"}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if last := got.Messages[2].Content; last[2]["cache_control"] == nil || last[0]["cache_control"] != nil {
		t.Errorf("the mark of the cache is not at the end: %v", last)
	}
	if !strings.Contains(s.bodies[0], `"input":{"b":"x","a":1}`) {
		t.Errorf("arguments were rewritten: %s", s.bodies[0])
	}
}

// TestPrefix: what was sent once is sent again byte for byte when the conversation grows, up to the marker that moves.
func TestPrefix(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: stream("end_turn", text(0, "x"))})
	p := provider(t, s, nil)
	req := hi()
	if _, err := p.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: "x"}, llm.Message{Role: llm.User, Text: "more"})
	if _, err := p.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	parts := func(body string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, second := parts(s.bodies[0]), parts(s.bodies[1])
	for _, part := range []string{"tools", "system"} {
		if string(first[part]) != string(second[part]) || len(first[part]) == 0 {
			t.Errorf("%s differ:\n%s\n%s", part, first[part], second[part])
		}
	}
	unmarked := strings.ReplaceAll(strings.TrimSuffix(string(first["messages"]), "]"), `,"cache_control":{"type":"ephemeral"}`, "")
	unmarked = strings.ReplaceAll(unmarked, `"cache_control":{"type":"ephemeral"},`, "")
	if !strings.HasPrefix(string(second["messages"]), unmarked) {
		t.Errorf("messages do not begin as before:\n%s\n%s", unmarked, second["messages"])
	}
}

// TestThoughts: the thinking before a use is sent back with it, but only to the same host.
func TestThoughts(t *testing.T) {
	t.Parallel()
	thinking := []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me see."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b3BhcXVl"}}`,
		`{"type":"content_block_stop","index":1}`,
	}
	s := serve(t, reply{body: stream("tool_use", thinking, use(2, "toolu_1", "read", `{}`))})
	p := provider(t, s, nil)
	var said string
	res, err := p.Chat(t.Context(), hi(), func(x string) { said += x })
	if err != nil || said != "" {
		t.Fatalf("%v; said %q", err, said)
	}
	req := hi()
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Uses: res.Uses}, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: res.Uses[0].ID, Text: "y"}})
	if _, err := p.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"signature":"c2ln"`, `"thinking":"Let me see."`, `"data":"b3BhcXVl"`} {
		if !strings.Contains(s.bodies[1], want) {
			t.Errorf("%s is not sent back: %s", want, s.bodies[1])
		}
	}
	other := serve(t, reply{body: stream("end_turn", text(0, "x"))})
	if _, err := provider(t, other, nil).Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(other.bodies[0], "Let me see") {
		t.Error("thoughts went to another host")
	}
}

// TestThoughtsKeepTheirPlaces: thinking between text and uses goes back where it stood, and not to another model.
func TestThoughtsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	thinking := func(i int, words string) []string {
		return []string{
			fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"thinking","thinking":%q,"signature":"s%d"}}`, i, words, i),
			fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i),
		}
	}
	s := serve(t, reply{body: stream("tool_use", thinking(0, "one"), text(1, "I look."), thinking(2, "two"), use(3, "toolu_1", "read", `{}`), thinking(4, "three"), use(5, "toolu_2", "read", `{}`))})
	res, err := provider(t, s, nil).Chat(t.Context(), hi(), nil)
	if err != nil || len(res.Uses) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	req := hi()
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Uses: res.Uses},
		llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "toolu_1", Text: "y"}}, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "toolu_2", Text: "z"}})
	for model, want := range map[string]string{"": "thinking text thinking tool_use thinking tool_use", "claude-other": "text tool_use tool_use"} {
		p := provider(t, s, func(o *anthropic.Options) {
			if model != "" {
				o.Model = model
			}
		})
		if _, err := p.Chat(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Messages []struct {
				Content []struct{ Type, Thinking string }
			}
		}
		if err := json.Unmarshal([]byte(s.bodies[len(s.bodies)-1]), &body); err != nil {
			t.Fatal(err)
		}
		var types []string
		for _, b := range body.Messages[1].Content {
			types = append(types, b.Type)
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%q: %s, want %s", model, got, want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	failed := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"r"}`, kind, message)
	}
	tests := map[string]struct {
		reply reply
		kind  llm.Kind
		wait  time.Duration
		text  string
	}{
		"key":         {reply{status: 401, body: failed("authentication_error", "invalid x-api-key "+key)}, llm.Unauthorized, 0, "[redacted]"},
		"credit":      {reply{status: 400, body: failed("invalid_request_error", "Your credit balance is too low")}, llm.NoCredit, 0, "credit"},
		"rate":        {reply{status: 429, body: failed("rate_limit_error", "slow down"), header: map[string]string{"Retry-After": "7"}}, llm.RateLimited, 7 * time.Second, "slow down"},
		"date":        {reply{status: 429, body: failed("rate_limit_error", "x"), header: map[string]string{"Retry-After": "Wed, 04 Mar 2026 12:00:30 GMT"}}, llm.RateLimited, 30 * time.Second, "x"},
		"overloaded":  {reply{status: 529, body: failed("overloaded_error", "Overloaded")}, llm.Unavailable, 0, "Overloaded"},
		"too long":    {reply{status: 400, body: failed("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")}, llm.TooLong, 0, "too long"},
		"large":       {reply{status: 413, body: failed("request_too_large", "x")}, llm.TooLong, 0, "x"},
		"invalid":     {reply{status: 400, body: failed("invalid_request_error", "messages: nope")}, llm.Invalid, 0, "nope"},
		"gateway":     {reply{status: 502, body: "<html>bad gateway</html>"}, llm.Unavailable, 0, "bad gateway"},
		"redirect":    {reply{status: 302, header: map[string]string{"Location": "https://elsewhere.example"}}, llm.WrongAddress, 0, "redirects"},
		"empty":       {reply{}, llm.Truncated, 0, "stop_reason"},
		"cut":         {reply{body: sse(append([]string{begin}, text(0, "half")...)...)}, llm.Truncated, 0, "stop_reason"},
		"no reason":   {reply{body: sse(begin, end)}, llm.Truncated, 0, "stop_reason"},
		"in stream":   {reply{body: sse(append(append([]string{begin}, text(0, "half")...), failed("overloaded_error", "Overloaded"))...)}, llm.Unavailable, 0, "Overloaded"},
		"wrong block": {reply{body: sse(begin, `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}`)}, llm.Truncated, 0, "content block 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := provider(t, serve(t, tt.reply), func(o *anthropic.Options) {
				o.Now = func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }
			})
			said := ""
			_, err := p.Chat(t.Context(), hi(), func(s string) { said += s })
			e, ok := errors.AsType[*llm.Error](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if e.Kind != tt.kind || e.RetryAfter != tt.wait || !strings.Contains(e.Error(), tt.text) || strings.Contains(e.Error(), key) || e.Provider != "main" {
				t.Errorf("%+v (%v), want %s", e, e, tt.kind)
			}
			if e.Streamed != (said != "") {
				t.Errorf("streamed %t, said %q", e.Streamed, said)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{})
	p := provider(t, s, nil)
	s.Close()
	_, err := p.Chat(t.Context(), hi(), nil)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Unavailable {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Chat(ctx, hi(), nil); !errors.Is(err, context.Canceled) || errors.Is(err, llm.ErrUnderWay) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestGivenUpUnderWay: a call that is given up while the server has its request says so.
func TestGivenUpUnderWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		cancel()
		<-over
	}))
	t.Cleanup(s.Close)
	defer close(over)
	p := provider(t, &server{Server: s}, nil)
	if _, err := p.Chat(ctx, hi(), nil); !errors.Is(err, context.Canceled) || !errors.Is(err, llm.ErrUnderWay) {
		t.Errorf("given up: %v", err)
	}
}

// TestSilence: a server accepts the request and sends nothing.
func TestSilence(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	p, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: s.URL, Key: key, Model: "m", Idle: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Chat(t.Context(), hi(), nil)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Timeout {
		t.Errorf("error %v", err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]anthropic.Options{
		"name is empty":      {Model: "m", Key: "k"},
		"model is empty":     {Name: "a", Key: "k"},
		"api_key is empty":   {Name: "a", Model: "m"},
		"line break":         {Name: "a", Model: "m", Key: "k\n"},
		"not be negative":    {Name: "a", Model: "m", Key: "k", MaxTokens: -1},
		"base_url must look": {Name: "a", Model: "m", Key: "k", BaseURL: "ftp://x"},
	} {
		if _, err := anthropic.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if got := fmt.Sprintf("%v %s %#v %x", anthropic.Key("secret"), anthropic.Key("secret"), anthropic.Key("secret"), anthropic.Key("secret")); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

// TestNamesOfProperties: names of a tool's properties that the vendor refuses are others on the wire, also in the history,
// and the calls of the model have the tool's own.
func TestNamesOfProperties(t *testing.T) {
	t.Parallel()
	const own, wire = `{"filter[x]":[{"$top":2}]}`, `{"filter_x_":[{"_top":2}]}`
	req := hi()
	req.Tools = append(req.Tools, llm.Tool{Name: "s:find", Schema: json.RawMessage(`{"type":"object","properties":{"filter[x]":{"type":"array","items":{"type":"object","properties":{"$top":{"type":"integer"}}}}}}`)})
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: "c1", Name: "s:find", Args: json.RawMessage(own)}}},
		llm.Message{Role: llm.User, Result: &llm.ToolResult{ID: "c1", Name: "s:find", Text: "none"}},
		llm.Message{Role: llm.User, Text: "again"},
	)
	for name, answer := range map[string]string{
		"call": stream("tool_use", use(0, "c2", "s__find", wire[:9], wire[9:])),
		"text": stream("end_turn", text(0, `<tool_call>{"name":"s__find","arguments":`+wire+`}</tool_call>`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply{body: answer})
			res, err := provider(t, s, nil).Chat(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Uses) != 1 || res.Uses[0].Name != "s:find" || string(res.Uses[0].Args) != own {
				t.Errorf("calls: %+v", res.Uses)
			}
			if sent := s.bodies[0]; !strings.Contains(sent, `"input":`+wire) || strings.Contains(sent, `"filter[x]":`) || strings.Contains(sent, `"$top":`) {
				t.Errorf("sent: %s", sent)
			}
		})
	}
}
