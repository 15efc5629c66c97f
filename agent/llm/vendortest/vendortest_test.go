package vendortest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

func serve(t *testing.T, o vendortest.Options) *vendortest.Server {
	t.Helper()
	s, err := vendortest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// provider is the adapter that is configured for a server; known: the server's row of package dialect is used.
func provider(t *testing.T, s *vendortest.Server, known bool) llm.Provider {
	t.Helper()
	var d dialect.Dialect
	if known {
		d, _ = dialect.Named(s.Preset())
	}
	if s.Type() == "anthropic" {
		p, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: s.URL(), Key: anthropic.Key(s.Key()), Model: s.Name(), Dialect: d, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, err := openai.New(openai.Options{Name: "main", BaseURL: s.URL(), Key: openai.Key(s.Key()), Model: s.Name(), MaxTokens: 1024, Dialect: d, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// post sends a body as it stands.
func post(t *testing.T, s *vendortest.Server, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, name := range []string{"Authorization", "api-key", "x-api-key"} {
		req.Header.Set(name, s.Key())
	}
	return send(t, req)
}

func send(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// plain is a request that every server with an API takes.
func plain(s *vendortest.Server, wire, more string) (path, body string) {
	switch wire {
	case "messages":
		return "/v1/messages", fmt.Sprintf(`{"model":%q,"stream":true,"max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]%s}`, s.Name(), more)
	case "responses":
		return "/responses", fmt.Sprintf(`{"model":%q,"stream":true,"input":[{"type":"message","role":"user","content":"hello"}]%s}`, s.Name(), more)
	default:
		return "/chat/completions", fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"system","content":"You help."},{"role":"user","content":"hello"}]%s}`, s.Name(), more)
	}
}

// tool is a tool in the safe subset, in the form of an API.
func tool(wire, schema string) string {
	switch wire {
	case "messages":
		return `,"tools":[{"name":"look","description":"Looks.","input_schema":` + schema + `}]`
	case "responses":
		return `,"tools":[{"type":"function","name":"look","description":"Looks.","strict":false,"parameters":` + schema + `}]`
	default:
		return `,"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":` + schema + `}}]`
	}
}

// TestEveryServer: each server takes a plain request on each of its APIs, a tool in the safe subset too, refuses a wrong
// key and an unknown model, and says in each of its forms that a request is too long; what it says is JSON where it says
// so, and nothing of a template is left in it.
func TestEveryServer(t *testing.T) {
	t.Parallel()
	for _, name := range vendortest.Vendors() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, vendortest.Options{Vendor: name})
			for _, wire := range s.Wires() {
				path, body := plain(s, wire, "")
				if status, text := post(t, s, path, body); status != http.StatusOK || !strings.Contains(text, "All right.") {
					t.Errorf("%s: %d %s", wire, status, text)
				}
				path, body = plain(s, wire, tool(wire, `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`))
				if name == "gemini" {
					path, body = plain(s, wire, tool(wire, `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`))
				}
				if status, text := post(t, s, path, body); status != http.StatusOK {
					if !strings.Contains(text, "reasoning_effort") { // OpenAI's newest models take tools on one API only
						t.Errorf("%s: a tool in the safe subset: %d %s", wire, status, text)
					}
				}
				path, body = plain(s, wire, "")
				status, text := post(t, s, path, strings.ReplaceAll(body, s.Name(), "no-such-model"))
				told(t, "unknown model", status, text)
			}
			for _, kind := range s.Failures() {
				if err := s.Fail(kind); err != nil {
					t.Fatal(err)
				}
				path, body := plain(s, s.Wires()[0], "")
				status, text := post(t, s, path, body)
				told(t, kind, status, text)
			}
			for _, kind := range []string{"model", "rate", "overload"} {
				if !slices.Contains(s.Failures(), kind) {
					t.Errorf("nothing is known of %q", kind)
				}
			}
			if !s.Keyless() && !slices.Contains(s.Failures(), "key") {
				t.Error("nothing is known of a wrong key")
			}
			tooLong(t, name)
		})
	}
}

// told checks the body of a refusal or failure.
func told(t *testing.T, what string, status int, text string) {
	t.Helper()
	if strings.Contains(text, "${") || strings.Contains(text, "@each@") {
		t.Errorf("%s: %d: a template is not filled in: %s", what, status, text)
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		if !json.Valid([]byte(text)) {
			t.Errorf("%s: %d: not JSON: %s", what, status, text)
		}
	}
}

func tooLong(t *testing.T, name string) {
	t.Helper()
	forms, err := vendortest.Overflows(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range forms {
		s := serve(t, vendortest.Options{Vendor: name, Overflow: form, Window: 1000})
		path, body := plain(s, s.Wires()[0], "")
		status, text := post(t, s, path, strings.ReplaceAll(body, "hello", strings.Repeat("word ", 1000)))
		told(t, form, status, text)
		if status == http.StatusOK && strings.Contains(text, "All right.") {
			t.Errorf("%s: %d %s", form, status, text)
		}
		if e := s.Exchanges(); len(e) != 1 || e[0].Model || e[0].Refused != "too long: "+form {
			t.Errorf("%s: %+v", form, e)
		}
	}
}

// TestPages: what the servers list is JSON.
func TestPages(t *testing.T) {
	t.Parallel()
	for vendor, paths := range map[string][]string{
		"openai": {"/v1/models"}, "anthropic": {"/v1/models"}, "gemini": {"/v1beta/openai/models", "/v1beta/models"}, "deepseek": {"/models"},
		"mistral": {"/v1/models"}, "xai": {"/v1/models"}, "groq": {"/openai/v1/models"}, "openrouter": {"/api/v1/models"}, "together": {"/v1/models"},
		"llamacpp": {"/v1/models", "/props"}, "lmstudio": {"/v1/models", "/api/v0/models", "/api/v1/models"}, "ollama": {"/v1/models", "/api/ps"},
		"vllm": {"/v1/models"}, "tgi": {"/info"}, "litellm": {"/model/info"}, "copilot": {"/models"},
	} {
		s := serve(t, vendortest.Options{Vendor: vendor, Window: 12345})
		base := strings.TrimSuffix(s.URL(), mustPath(t, s.URL()))
		for _, path := range paths {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Authorization", "api-key", "x-api-key"} {
				req.Header.Set(name, s.Key())
			}
			status, text := send(t, req)
			told(t, vendor+path, status, text)
			if status != http.StatusOK || !strings.Contains(text, s.Name()) {
				t.Errorf("%s%s: %d %s", vendor, path, status, text)
			}
		}
	}
}

func mustPath(t *testing.T, address string) string {
	t.Helper()
	_, rest, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	if rest == "" {
		return ""
	}
	return "/" + rest
}

// TestRefusals: what the servers refuse, and what they say.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"%s","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	history := func(id string, more string) string {
		return `"messages":[{"role":"user","content":"a"},` + fmt.Sprintf(call, id) + `,{"role":"tool","tool_call_id":"` + id + `","name":"look","content":"b"}` + more + `]`
	}
	tests := []struct {
		vendor, wire, model, schema, more string // more is added to a plain request, or replaces its messages
		status                            int
		want                              []string
	}{
		{vendor: "openai", schema: `{"type":"object"}`, status: 400, want: []string{`"code":"invalid_function_parameters"`, `"param":"tools[0].function.parameters"`, "function 'look'", "In context=(), object schema missing properties"}},
		{vendor: "openai", wire: "responses", schema: `{"type":"object","properties":{"a":{"type":"array"}}}`, status: 400, want: []string{`"param":"tools[0].parameters"`, "In context=('properties', 'a'), array schema missing items"}},
		{vendor: "openai", schema: `{"type":"object","properties":{},"anyOf":[]}`, status: 400, want: []string{"at the top level"}},
		{vendor: "openai", model: "gpt-5.6", more: tool("chat", `{"type":"object","properties":{}}`), status: 400, want: []string{`"param":"reasoning_effort"`, `"code":null`, "/v1/responses"}},
		{vendor: "openai", model: "o4-mini", more: `,"max_tokens":3`, status: 400, want: []string{`"code":"unsupported_parameter"`, `"param":"max_tokens"`, "max_completion_tokens"}},
		{vendor: "openai", more: `,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"look","arguments":"{\"a\":"}}]},{"role":"tool","tool_call_id":"x","content":"c"}]`, status: 400, want: []string{"messages[1].tool_calls[0].function.arguments"}},
		{vendor: "openai", more: "," + history(strings.Repeat("x", 60), ""), status: 400, want: []string{`"code":"string_above_max_length"`, `messages[1].tool_calls[0].id`}},
		{vendor: "openai", more: `,"messages":[{"role":"user","content":"a"},` + fmt.Sprintf(call, "x") + `,{"role":"user","content":"b"}]`, status: 400, want: []string{"did not have response messages: x"}},
		{vendor: "openai", more: `,"messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":"b"}]`, status: 400, want: []string{"must be a response"}},
		{vendor: "anthropic", wire: "messages", schema: `{"type":"object","anyOf":[]}`, status: 400, want: []string{"tools.0.custom.input_schema"}},
		{vendor: "gemini", schema: `{"type":"object","properties":{"a":{"const":"x"}}}`, status: 400, want: []string{`[{"error"`, `"field":"tools[0].function_declarations[0].parameters.properties.a"`, `Unknown name \"const\"`}},
		{vendor: "gemini", schema: `{"type":"object","properties":{"const":{"type":"string"}}}`, status: 200},
		{vendor: "gemini", more: `,"store":true`, status: 400, want: []string{`Unknown name \"store\": Cannot find field`}},
		{vendor: "gemini", more: "," + strings.ReplaceAll(history("x", ""), `"name":"look","content"`, `"content"`), status: 400, want: []string{"invalid argument"}},
		{vendor: "moonshot", schema: `{"type":"object","properties":{"a":{"type":"string","anyOf":[{"type":"string"}]}}}`, status: 400, want: []string{"moonshot flavored json schema", "properties.a"}},
		{vendor: "moonshot", more: `,"temperature":0.3`, status: 400, want: []string{"only 1 is allowed"}},
		{vendor: "deepseek", schema: `{}`, status: 400, want: []string{"function 'look'", "type: null", `"param":null`}},
		{vendor: "deepseek", more: "," + history("x", ""), status: 400, want: []string{"Missing `reasoning_content`"}},
		{vendor: "groq", schema: `{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`, status: 400, want: []string{`"param":"tool look, tools[0].function.parameters"`}},
		{vendor: "cerebras", schema: `{"type":"object","properties":{"a":{"type":"string","pattern":"a"}}}`, status: 422, want: []string{`{"message":"Unsupported JSON schema fields: ['pattern']"`, "wrong_api_format"}},
		{vendor: "llamacpp", schema: `{"type":"object","properties":{"a":{"type":"string","pattern":"\\d+"}}}`, status: 400, want: []string{"failed to parse grammar"}},
		{vendor: "ollama", model: "llama3.2:3b", schema: `{"type":"object","properties":{}}`, status: 400, want: []string{"does not support tools"}},
		{vendor: "mistral", more: `,"user":"u"`, status: 422, want: []string{`"type":"extra_forbidden"`, `["body","user"]`}},
		{vendor: "mistral", more: "," + history("call_x", ""), status: 400, want: []string{`"code":"3280"`}},
		{vendor: "mistral", more: "," + history("abcdef123", `,{"role":"user","content":"c"}`), status: 400, want: []string{`"code":"3230"`}},
		{vendor: "mistral", more: "," + history("abcdef123", ""), status: 200},
		{vendor: "xai", more: `,"presence_penalty":0`, status: 400, want: []string{`"error":"Model grok-4 does not support parameter presencePenalty."`}},
		{vendor: "tgi", more: `,"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"c"}]`, status: 422, want: []string{"missing field `content`"}},
		{vendor: "bedrock", more: `,"messages":[{"role":"user","content":"a"},` + strings.ReplaceAll(fmt.Sprintf(call, "x"), "null", `""`) + `,{"role":"tool","tool_call_id":"x","content":"c"}]` + tool("chat", `{"type":"object","properties":{}}`), status: 400, want: []string{"must be non-empty"}},
		{vendor: "bedrock", more: "," + strings.ReplaceAll(history("x", ""), `"content":null,`, ""), status: 400, want: []string{"toolConfig"}},
		{vendor: "mlx", more: `,"messages":[{"role":"user","content":"a"},{"role":"system","content":"c"}]`, status: 404, want: []string{`{"error":"System message`}},
		{vendor: "vllm", model: "google/gemma-3-27b-it", more: `,"messages":[{"role":"user","content":"a"},{"role":"user","content":"c"}]`, status: 400, want: []string{"alternate"}},
		{vendor: "litellm", more: "," + history(strings.Repeat("x", 60), ""), status: 400, want: []string{"ContextWindowExceededError", "string too long"}},
		{vendor: "zai", more: `,"store":true`, status: 400, want: []string{`"code":"1210"`}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, " ", tt.vendor), func(t *testing.T) {
			t.Parallel()
			s := serve(t, vendortest.Options{Vendor: tt.vendor, Name: tt.model})
			wire := tt.wire
			if wire == "" {
				wire = "chat"
			}
			more := tt.more
			if tt.schema != "" {
				more += tool(wire, tt.schema)
			}
			path, body := plain(s, wire, more) // of two fields with one name, the last one counts
			status, text := post(t, s, path, body)
			told(t, tt.vendor, status, text)
			if status != tt.status {
				t.Errorf("status %d, want %d: %s", status, tt.status, text)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
		})
	}
}

// TestStreams: the shapes of the streams that are odd.
func TestStreams(t *testing.T) {
	t.Parallel()
	for vendor, want := range map[string][]string{
		"gemini":     {`"extra_content":{"google":{"thought_signature"`, `"finish_reason":"stop"`, `"index":0`},
		"mistral":    {`"finish_reason":"tool_calls"`, `{"thinking":[{`},
		"groq":       {`"x_groq":{`, `"reasoning":"` + vendortest.Thought},
		"deepseek":   {": keep-alive\n\n\n", `"usage":null`, `"reasoning_content":"` + vendortest.Thought},
		"azure":      {`"choices":[],"prompt_filter_results"`, `"content_filter_offsets"`},
		"openrouter": {": OPENROUTER PROCESSING", `"reasoning_details":[`},
		"minimax":    {"<think>"},
		"together":   {`"finish_reason":"tool_calls"`},
		"moonshot":   {`"id":"functions.look:0"`},
	} {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			model := llmtest.New(llmtest.Step{Text: "I look.", Uses: []llm.ToolUse{{Name: "look", Args: json.RawMessage(`{"at":"a"}`)}, {Name: "look", Args: json.RawMessage(`{"at":"b"}`)}}})
			s := serve(t, vendortest.Options{Vendor: vendor, Model: model})
			path, body := plain(s, "chat", "")
			_, text := post(t, s, path, body)
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("lacks %s in:\n%s", w, text)
				}
			}
			for line := range strings.Lines(text) {
				data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
				if ok && data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Errorf("not JSON: %s", data)
				}
			}
			calls := strings.Count(text, `"name":"look"`)
			if calls != 2 {
				t.Errorf("%d calls in:\n%s", calls, text)
			}
		})
	}
}

// conversation plays two turns with calls through an adapter, and reports what stopped it.
func conversation(ctx context.Context, p llm.Provider) (seen string, err error) {
	schema := json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`)
	req := &llm.Request{
		System: "You help.", User: "u1", MaxTokens: 500,
		Tools:    []llm.Tool{{Name: "look", Description: "Looks.", Schema: schema}, {Name: "fs:list", Description: "Lists.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}},
		Messages: []llm.Message{{Role: llm.User, Text: "first"}},
	}
	for range 8 {
		res, err := p.Chat(ctx, req, func(d string) { seen += d })
		if err != nil {
			return seen, err
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Uses: res.Uses, Extra: res.Extra})
		for _, u := range res.Uses {
			req.Messages = append(req.Messages, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: u.ID, Name: u.Name, Text: "there"}})
		}
		if len(res.Uses) > 0 {
			continue
		}
		if len(req.Messages) > 8 {
			return seen, nil
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Text: "second"})
	}
	return seen, fmt.Errorf("no end after %d messages", len(req.Messages))
}

const script = `on "first": say I look.
and call* look {"at":"a"} look {"at":"b"}
then call fs:list {}
then say Found it.
on "second": call look {"at":"c"}
then say Done.`

// unheld are the conversations that cannot be held, by server and way, with the reason.
var unheld = map[string]string{
	"azure known=false": "nobody can know that its key is in a header of its own",
}

// TestConversations: the adapters hold a conversation with calls with every server: known by its row, and as an unknown
// server of which everything has to be found out.
func TestConversations(t *testing.T) {
	t.Parallel()
	held := &tally{held: map[string]bool{}}
	t.Cleanup(func() { held.judge(t) }) // after all of them
	for _, name := range vendortest.Vendors() {
		models, err := vendortest.Models(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range models {
			for _, known := range []bool{true, false} {
				if unheld[fmt.Sprintf("%s known=%t", name, known)] != "" {
					continue
				}
				t.Run(fmt.Sprintf("%s %s known=%t", name, strings.ReplaceAll(asked, "/", "-"), known), func(t *testing.T) {
					t.Parallel()
					model, err := llmtest.Parse(script)
					if err != nil {
						t.Fatal(err)
					}
					s := serve(t, vendortest.Options{Vendor: name, Model: model, Name: asked})
					seen, err := conversation(t.Context(), provider(t, s, known))
					if err != nil {
						t.Error(err)
					}
					if !strings.HasSuffix(seen, "Done.") || strings.Contains(seen, vendortest.Thought) {
						t.Errorf("seen: %q", seen)
					}
					held.count(name, s)
					if rest := model.Unused(); len(rest) > 0 {
						t.Errorf("not reached: %v", rest)
					}
					if t.Failed() {
						for i, e := range s.Exchanges() {
							if e.Refused != "" {
								t.Logf("%d: %s\n%s\n%s", i, e.Refused, e.Answer, bytes.TrimSpace(e.Body))
							}
						}
					}
				})
			}
		}
	}
}

// tally counts which facts conversations have kept to.
type tally struct {
	mu   sync.Mutex
	held map[string]bool
}

func (c *tally) count(vendor string, s *vendortest.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range s.Exchanges() {
		for _, fact := range e.Held {
			c.held[vendor+": "+fact] = true
			c.held[fact] = true
		}
	}
}

// unsent are the parts of a request that are not sent in these conversations, and the facts that can only be broken, with
// the reason: TestFacts alone reaches those rows.
var unsent = map[string]string{
	"temperature": "only a configuration or a caller sets it", "top_p": "nobody sets it", "n": "nobody sets it",
	"response_format.type": "no conversation asks for JSON", "tool_choice": "auto is the default",
	"thinking.type": "only a configuration sets it", "reasoning_effort": "only a configuration sets it",
	"tools[*].function.strict":    "false is the default on the chat API",
	"messages[*].content[*].type": "there is no picture in them", "input[*].content[*].type": "there is no picture in them",
	"a model without tools": "it is broken by every request with tools",
	"gpt-5.6 takes tools on the chat API only with reasoning_effort none, which is not its default": "such a model is asked over the Responses API after the first refusal",
}

// judge finds the facts that no conversation was about.
func (c *tally) judge(t *testing.T) {
	t.Helper()
	for _, vendor := range vendortest.Vendors() {
		rows, err := vendortest.Facts(vendor)
		if err != nil {
			t.Error(err)
		}
		for _, row := range rows {
			own := row.Origin == "" && !c.held[vendor+": "+row.Fact]
			shared := row.Origin != "" && !c.held[row.Fact]
			if (own || shared) && unsent[row.At] == "" && unsent[row.Fact] == "" {
				t.Errorf("%s: no conversation is about %q (%s)", cmp.Or(row.Origin, vendor), row.Fact, row.At)
			}
		}
	}
}
