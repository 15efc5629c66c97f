package openai_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// rowOf returns the row of a server.
func rowOf(t *testing.T, name string) dialect.Dialect {
	t.Helper()
	if name == "" {
		return dialect.Dialect{}
	}
	d, ok := dialect.Named(name)
	if !ok {
		t.Fatalf("no row %q", name)
	}
	return d
}

// sentMessages returns the messages of the last request, as JSON.
func sentMessages(t *testing.T, s *plays) []json.RawMessage {
	t.Helper()
	_, bodies := s.asked()
	var body struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(bodies[len(bodies)-1], &body); err != nil {
		t.Fatal(err)
	}
	return body.Messages
}

const calling = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x1","type":"function","function":{"name":"read","arguments":"{}"}}]}}]}`

// TestReasoningFields: what a server gives besides text and calls goes back to it, byte for byte, as its row says, and
// to nobody else.
func TestReasoningFields(t *testing.T) {
	t.Parallel()
	delta := func(fields string) string { return `{"choices":[{"index":0,"delta":{` + fields + `}}]}` }
	for name, tt := range map[string]struct {
		row    string
		deltas []string
		want   []string // of the model's message
		not    string
	}{
		"unknown server":         {"", []string{delta(`"reasoning_content":"A <b>"`), delta(`"reasoning_content":" \ud83d"`), delta(`"reasoning_content":"\ude00"`)}, []string{`"reasoning_content":"A <b> \ud83d\ude00"`}, ""},
		"empty":                  {"deepseek", []string{delta(`"reasoning_content":""`)}, []string{`"reasoning_content":""`, `"content":""`}, ""},
		"never given":            {"deepseek", []string{delta(`"reasoning_content":null`)}, []string{`"content":""`}, "reasoning"},
		"vllm's new name":        {"vllm", []string{delta(`"reasoning":"A"`)}, []string{`"reasoning":"A"`}, ""},
		"groq":                   {"groq", []string{delta(`"reasoning":"A"`)}, nil, "reasoning"},
		"mistral":                {"mistral", []string{delta(`"reasoning_content":"A"`)}, nil, "reasoning"},
		"cerebras":               {"cerebras", []string{delta(`"reasoning_content":"A"`)}, nil, "reasoning"},
		"openrouter, in pieces":  {"openrouter", []string{delta(`"reasoning":"A","reasoning_details":[{"type":"reasoning.text","index":0,"text":"A","format":"f"}]`), delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"B","signature":"s"}]`), delta(`"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"d"}]`)}, []string{`"reasoning_details":[{"format":"f","index":0,"signature":"s","text":"AB","type":"reasoning.text"},{"type":"reasoning.encrypted","index":1,"data":"d"}]`}, `"reasoning":`},
		"openrouter, two texts":  {"openrouter", []string{delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"A","signature":"s"}]`), delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"B","signature":"t"}]`)}, []string{`[{"type":"reasoning.text","index":0,"text":"A","signature":"s"},{"type":"reasoning.text","index":0,"text":"B","signature":"t"}]`}, ""},
		"something else as text": {"", []string{delta(`"reasoning_content":{"a":1},"reasoning":7,"reasoning_details":"x"`)}, nil, "reasoning"},
		"too long":               {"", []string{delta(`"reasoning_content":"` + strings.Repeat("x", 600<<10) + `"`)}, nil, "reasoning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, reply{body: sse(append(tt.deltas, calling, finish("tool_calls"))...)}, reply{body: sse(text("a"), finish("stop"))}, reply{body: sse(text("a"), finish("stop"))})
			with := func(model string) *openai.Provider {
				return s.provider(t, func(o *openai.Options) { o.Model, o.Wire, o.Dialect = model, openai.WireChat, rowOf(t, tt.row) })
			}
			res, err := with("m").Chat(t.Context(), hi(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := with("m").Chat(t.Context(), answered(res), nil); err != nil {
				t.Fatal(err)
			}
			said := string(sentMessages(t, s)[1])
			for _, want := range tt.want {
				if !strings.Contains(unescaped(said), unescaped(want)) {
					t.Errorf("the message lacks %s: %s", want, said)
				}
			}
			if tt.not != "" && strings.Contains(said, tt.not) {
				t.Errorf("the message has %s: %.300s", tt.not, said)
			}
			if _, err := with("another").Chat(t.Context(), answered(res), nil); err != nil {
				t.Fatal(err)
			}
			if said := string(sentMessages(t, s)[1]); strings.Contains(said, "reasoning") {
				t.Errorf("another model was sent %.300s", said)
			}
		})
	}
}

// unescaped undoes the escapes of Go's encoder, which mean the same.
func unescaped(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
}

// TestReasoningOfAnswers: an answer after results belongs to a turn with calls; one without does not need its reasoning.
func TestReasoningOfAnswers(t *testing.T) {
	t.Parallel()
	thinks := sse(`{"choices":[{"index":0,"delta":{"reasoning_content":"A"}}]}`, text("a"), finish("stop"))
	for name, tt := range map[string]struct {
		row         string
		plain, used bool // reasoning is kept of an answer without calls, and of one that follows results
	}{
		"unknown": {"", false, true}, "deepseek": {"deepseek", false, true}, "z.ai": {"zai", true, true}, "openai": {"openai", false, false},
	} {
		s := play(t, reply{body: thinks}, reply{body: thinks})
		p := s.provider(t, func(o *openai.Options) { o.Model, o.Wire, o.Dialect = "m", openai.WireChat, rowOf(t, tt.row) })
		plain, err := p.Chat(t.Context(), hi(), nil)
		if err != nil {
			t.Fatal(err)
		}
		used, err := p.Chat(t.Context(), answered(&llm.Response{
			Uses: []llm.ToolUse{{ID: "1", Name: "read"}}, Extra: json.RawMessage(fmt.Sprintf(`{"host":%q,"model":"m"}`, s.Listener.Addr())),
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(plain.Extra) > 0 != tt.plain || len(used.Extra) > 0 != tt.used {
			t.Errorf("%s: kept %s and %s", name, plain.Extra, used.Extra)
		}
	}
}

// TestKeptThoughts: vendors that forget the thoughts of earlier turns unless they are told not to are told so, and get them
// back with every message; models of theirs that do not know the field are not sent it.
func TestKeptThoughts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		row, model, field string
		all               bool // thoughts go back with every message
	}{
		{"zai", "glm-4.7", `"thinking":{"type": "enabled", "clear_thinking": false}`, true},
		{"zai", "GLM-5.2", `"thinking":{"type": "enabled", "clear_thinking": false}`, true},
		{"zai", "glm-4.5-air", "", true},
		{"moonshot", "kimi-k2.6", `"thinking":{"type": "enabled", "keep": "all"}`, true},
		{"moonshot", "kimi-k2.7-code", "", true},
		{"moonshot", "kimi-k2.5", "", false},
		{"moonshot", "kimi-latest", "", false},
		{"dashscope", "qwen3.6-plus", `"preserve_thinking":true`, true},
		{"dashscope", "deepseek-v3.2", "", false},
		{"openrouter", "moonshotai/kimi-k2.6", "", true},
		{"", "glm-5", "", false},
		{"vllm", "Qwen/Qwen3.6-35B", "", false},
	} {
		t.Run(tt.row+" "+tt.model, func(t *testing.T) {
			t.Parallel()
			answer := reply{body: sse(`{"choices":[{"index":0,"delta":{"reasoning_content":"A"}}]}`, text("a"), finish("stop"))}
			s := play(t, answer, answer)
			p := s.provider(t, func(o *openai.Options) { o.Model, o.Wire, o.Dialect = tt.model, openai.WireChat, rowOf(t, tt.row) })
			res, err := p.Chat(t.Context(), hi(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req := hi()
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Extra: res.Extra}, llm.Message{Role: llm.User, Text: "and?"})
			if _, err := p.Chat(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			_, bodies := s.asked()
			if sent := string(bodies[1]); tt.field != "" && !strings.Contains(sent, tt.field) || tt.field == "" && strings.Contains(sent, "thinking") {
				t.Errorf("sent %s, want %s", sent, tt.field)
			}
			if said := string(sentMessages(t, s)[1]); strings.Contains(said, `"reasoning_content":"A"`) != tt.all {
				t.Errorf("the answer went back as %s", said)
			}
		})
	}
}

// TestSignatureOfAnotherModel: a call's signature stays with its call and is left out once the model has changed.
func TestSignatureOfAnotherModel(t *testing.T) {
	t.Parallel()
	signed := calls(`{"index":0,"id":"1","type":"function","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}},{"index":1,"id":"2","type":"function","function":{"name":"read","arguments":"{}"}}`)
	answer := reply{body: sse(text("a"), finish("stop"))}
	s := play(t, reply{body: sse(signed, finish("tool_calls"))}, answer, answer)
	with := func(model string) *openai.Provider {
		return s.provider(t, func(o *openai.Options) { o.Model, o.Dialect = model, rowOf(t, "gemini") })
	}
	res, err := with("gemini-3-pro").Chat(t.Context(), hi(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]int{"gemini-3-pro": 1, "gemini-3-flash": 0} {
		if _, err := with(model).Chat(t.Context(), answered(res), nil); err != nil {
			t.Fatal(err)
		}
		list := sentMessages(t, s)
		var m struct {
			Calls []json.RawMessage `json:"tool_calls"`
		}
		if err := json.Unmarshal(list[1], &m); err != nil || len(m.Calls) != 2 || strings.Count(string(list[1]), `"sig"`) != want || strings.Count(string(m.Calls[0]), `"sig"`) != want {
			t.Errorf("%s: %s, %v", model, list[1], err)
		}
		if !strings.Contains(string(list[2]), `"name":"read"`) {
			t.Errorf("a result without the name of its tool: %s", list[2])
		}
	}
}

// TestHistoryOnTheWire: what stands in a request for conversations that servers have refused.
func TestHistoryOnTheWire(t *testing.T) {
	t.Parallel()
	long, kimi := strings.Repeat("i", 60), "functions.read:3"
	call := func(id, args string) llm.Message {
		return llm.Message{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: id, Name: "read", Args: json.RawMessage(args)}}}
	}
	result := func(id string) llm.Message {
		return llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: id, Name: "read", Text: "ok"}}
	}
	again := llm.Message{Role: llm.User, Text: "again"}
	for name, tt := range map[string]struct {
		row, model string
		messages   []llm.Message
		want       string // regular expression for the messages after the first one
	}{
		"mistral: an id of nine":            {"mistral", "mistral-large", []llm.Message{call("call_"+strings.Repeat("x", 24), "{}"), result("call_" + strings.Repeat("x", 24))}, `^\{"role":"assistant","content":null,"tool_calls":\[\{"id":"[A-Za-z0-9]{9}",.*\{"role":"tool","content":"ok","tool_call_id":"[A-Za-z0-9]{9}"\}$`},
		"a router: an id of nine":           {"openrouter", "mistralai/mistral-large", []llm.Message{call("c1_0", "{}"), result("c1_0")}, `"id":"[A-Za-z0-9]{9}".*"tool_call_id":"[A-Za-z0-9]{9}"`},
		"mistral: a message after a result": {"mistral", "mistral-large", []llm.Message{call("abcdefghi", "{}"), result("abcdefghi"), again}, `"tool_call_id":"abcdefghi"\}\{"role":"assistant","content":"[^"]+"\}\{"role":"user","content":"again"\}$`},
		"openai: an id that is too long":    {"openai", "gpt-4.1", []llm.Message{call(long, "{}"), result(long)}, `"id":"[A-Za-z0-9_-]{1,40}".*"tool_call_id":"[A-Za-z0-9_-]{1,40}"`},
		"kimi on an own server":             {"", "kimi-k2", []llm.Message{call(kimi, "{}"), result(kimi)}, `"id":"functions\.read:3".*"tool_call_id":"functions\.read:3"`},
		"qwen: a system message later":      {"vllm", "Qwen/Qwen3.5-9B", []llm.Message{{Role: llm.System, Text: "be kind"}, again}, `^\{"role":"user","content":"[^"]*be kind"\}\{"role":"user","content":"again"\}$`},
		"gemma: two messages in a row":      {"llamacpp", "gemma-3-12b", []llm.Message{again}, `^$`},
		"no system messages":                {"", "m", []llm.Message{again}, `^\{"role":"user","content":"again"\}$`},
		"arguments that were cut":           {"", "m", []llm.Message{call("c1_0", `{"a":`), result("c1_0")}, `"arguments":"\{\\"not_an_object\\":\\"\{\\\\\\"a\\\\\\":\\"\}"`},
		"a crash after the call":            {"", "m", []llm.Message{call("c1_0", `{}`)}, `"tool_calls":.*\{"role":"tool","content":"[^"]+","tool_call_id":"c1_0"\}$`},
		"content beside calls":              {"", "m", []llm.Message{call("c1_0", `{}`), result("c1_0")}, `^\{"role":"assistant","content":null,`},
		"gemini: the name of the tool":      {"gemini", "gemini-2.5-flash", []llm.Message{call("c1_0", `{}`), result("c1_0")}, `\{"role":"tool","content":"ok","name":"read","tool_call_id":"c1_0"\}$`},
		"groq: no name of the tool":         {"groq", "llama-3.3", []llm.Message{call("c1_0", `{}`), result("c1_0")}, `\{"role":"tool","content":"ok","tool_call_id":"c1_0"\}$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, reply{body: sse(text("a"), finish("stop"))})
			p := s.provider(t, func(o *openai.Options) { o.Model, o.Wire, o.Dialect = tt.model, openai.WireChat, rowOf(t, tt.row) })
			req := hi()
			req.Messages = append(req.Messages, tt.messages...)
			if _, err := p.Chat(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, m := range sentMessages(t, s)[1:] {
				got.Write(m)
			}
			if !regexp.MustCompile(tt.want).MatchString(got.String()) {
				t.Errorf("sent %s", got.String())
			}
		})
	}
}

// TestLastMessage: a conversation that ends with the model's words goes to every server with a user's message after them:
// Mistral and templates refuse it else.
func TestLastMessage(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"", "mistral", "openai", "vllm"} {
		s := play(t, reply{body: sse(text("a"), finish("stop"))})
		p := s.provider(t, func(o *openai.Options) { o.Wire, o.Dialect = openai.WireChat, rowOf(t, row) })
		req := &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}, {Role: llm.Assistant, Text: "hello"}}}
		if _, err := p.Chat(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		list := sentMessages(t, s)
		if last := string(list[len(list)-1]); !strings.Contains(last, `"role":"user"`) || !strings.Contains(last, "[go on]") {
			t.Errorf("%s: the last message is %s", row, last)
		}
	}
}
