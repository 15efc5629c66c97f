package negotiate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// server is a model server that refuses what it does not take.
type server struct {
	// refuse returns the body of a refusal with its status; "" = the request is taken.
	refuse func(body map[string]any) (status int, refusal string)

	mu       sync.Mutex
	requests []string // bodies
	refused  map[string]bool
	repeated int // requests that were refused before
}

// ask is a small adapter for the server.
func (s *server) ask(
	_ context.Context, req *llm.Request, contents *media.Contents, form *negotiate.Form, onDelta func(string),
) (*llm.Response, *negotiate.Refusal, error) {
	names := wire.NamesOf(req)
	body := map[string]any{"model": "m", "stream": true, "user": "u", "max_tokens": req.MaxTokens}
	if form.Dialect.Wire == "responses" {
		body["input"] = "x"
	}
	messages := []any{}
	for i := range req.Messages {
		m := &req.Messages[i]
		one := map[string]any{"role": string(m.Role), "content": contents.Text(m.Text, m.Parts)}
		if list := contents.Sent(m.Parts); len(list) > 0 {
			one["content"] = []any{map[string]any{"type": "image_url"}}
		}
		messages = append(messages, one)
	}
	if req.System != "" && !form.Dialect.History.NoSystem {
		messages = append([]any{map[string]any{"role": "system", "content": req.System}}, messages...)
	}
	body["messages"] = messages
	var tools []any
	for _, t := range req.Tools {
		if most := form.Dialect.Schema.MaxTools; most > 0 && len(tools) >= most {
			break
		}
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{
			"name": names.Encode(t.Name), "parameters": t.Schema, "safe": len(form.Dialect.Schema.Keywords) == 0,
		}})
	}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	if raw, err = form.Edits.Object(raw); err != nil {
		return nil, nil, err
	}
	if err := form.Check(raw); err != nil {
		return nil, nil, err
	}
	return s.answer(raw, names, onDelta)
}

func (s *server) answer(raw []byte, names *wire.Names, onDelta func(string)) (*llm.Response, *negotiate.Refusal, error) {
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, string(raw))
	status, refusal := s.refuse(body)
	if status == 0 {
		if onDelta != nil {
			onDelta("ok")
		}
		return &llm.Response{Text: "ok", Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 1}}, nil, nil
	}
	if s.refused[string(raw)] {
		s.repeated++
	}
	s.refused[string(raw)] = true
	c := complaint.Read(status, nil, []byte(refusal), time.Time{})
	return nil, &negotiate.Refusal{Complaint: &c, Body: raw, Names: names}, &llm.Error{Kind: c.Kind(), Status: status, Err: errors.New(c.Text())}
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *server) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

// start returns a server and what talks to it.
func start(refuse func(body map[string]any) (int, string)) (*server, *negotiate.Negotiator) {
	s := &server{refuse: refuse, refused: map[string]bool{}}
	d := dialect.Dialect{Schema: dialect.Schema{Keywords: []string{"pattern"}}}
	return s, negotiate.New(negotiate.Options{Provider: "main", Model: "m", Ask: s.ask, Dialect: d})
}

// toolsOf returns the names of the tools of a request.
func toolsOf(body map[string]any) []string {
	var list []string
	tools, _ := body["tools"].([]any)
	for _, t := range tools {
		list = append(list, t.(map[string]any)["function"].(map[string]any)["name"].(string))
	}
	return list
}

// hello is a request with n tools.
func hello(n int) *llm.Request {
	req := &llm.Request{System: "s", Messages: []llm.Message{{Role: llm.User, Text: "hello"}}, MaxTokens: 1000}
	for i := range n {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprintf("mcp:tool_%d", i), Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return req
}

// refuseTools refuses requests with tools of some numbers, as servers do that name none.
func refuseTools(words string, bad ...int) func(map[string]any) (int, string) {
	return func(body map[string]any) (int, string) {
		for _, i := range bad {
			if slices.Contains(toolsOf(body), fmt.Sprintf("mcp__tool_%d", i)) {
				return 400, words
			}
		}
		return 0, ""
	}
}

// TestABadToolNeverCostsATurn: whatever the server says about it, the person gets an answer, the tools beside it stay,
// and it is not offered again.
func TestABadToolNeverCostsATurn(t *testing.T) {
	t.Parallel()
	named := func(body map[string]any) (int, string) {
		for i, name := range toolsOf(body) {
			if name == "mcp__tool_3" || name == "mcp__tool_4" {
				return 400, fmt.Sprintf(`{"error":{"message":"Invalid schema","code":"invalid_function_parameters","param":"tools[%d].function.parameters"}}`, i)
			}
		}
		return 0, ""
	}
	const nothing = `{"error":{"message":"Invalid argument"}}`
	const unnamed = `{"error":{"message":"tools.function.parameters is not a valid moonshot flavored json schema"}}`
	for name, test := range map[string]struct {
		refuse func(map[string]any) (int, string)
		tools  int
		lost   int // tools that are not offered afterwards, at most
		most   int // requests of the first turn
	}{
		"two are named":    {named, 10, 2, 3},
		"one of one":       {refuseTools(unnamed, 0), 1, 1, 4},
		"one of two":       {refuseTools(unnamed, 1), 2, 1, 5},
		"one of sixty":     {refuseTools(unnamed, 41), 60, 1, 1 + negotiate.Budget},
		"the first of 128": {refuseTools(unnamed, 0), 128, 1, 1 + negotiate.Budget},
		"the last of 128":  {refuseTools(unnamed, 127), 128, 1, 1 + negotiate.Budget},
		"two of eight":     {refuseTools(unnamed, 1, 6), 8, 2, 1 + negotiate.Budget},
		"two of sixty":     {refuseTools(unnamed, 3, 41), 60, 59, 2 + negotiate.Budget},
		"half of them":     {refuseTools(unnamed, 0, 2, 4, 6, 8, 10, 12, 14), 16, 16, 2 + negotiate.Budget},
		"nothing is said":  {refuseTools(nothing, 17), 21, 1, 1 + negotiate.Budget},
		"a grammar, status 500": {func(b map[string]any) (int, string) {
			s, r := refuseTools("failed to parse grammar", 5)(b)
			return s + s/4, r
		}, 20, 1, 1 + negotiate.Budget},
		"all of them are too many": {func(b map[string]any) (int, string) {
			if len(toolsOf(b)) > 20 {
				return 400, `{"error":"Unable to generate parser"}`
			}
			return 0, ""
		}, 32, 16, 1 + negotiate.Budget},
		"the safe subset is enough": {func(b map[string]any) (int, string) {
			if strings.Contains(fmt.Sprint(b["tools"]), "safe:false") {
				return 400, unnamed
			}
			return 0, ""
		}, 20, 0, 2},
		"too many, with the number": {func(b map[string]any) (int, string) {
			if len(toolsOf(b)) > 12 {
				return 400, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 12, but got an array with length 20 instead.","param":"tools","code":"array_above_max_length"}}`
			}
			return 0, ""
		}, 20, 8, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, n := start(test.refuse)
			res, err := n.Chat(t.Context(), hello(test.tools), nil)
			if err != nil || res.Text != "ok" {
				t.Fatalf("%v, %v after %d requests", res, err, s.count())
			}
			if s.count() > test.most || s.repeated > 0 {
				t.Errorf("%d requests, want at most %d; %d were repeated", s.count(), test.most, s.repeated)
			}
			before := s.count()
			if _, err := n.Chat(t.Context(), hello(test.tools), nil); err != nil {
				t.Fatal(err)
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(s.last()), &body); err != nil {
				t.Fatal(err)
			}
			if lost := test.tools - len(toolsOf(body)); lost > test.lost || s.count()-before > 2 {
				t.Errorf("%d tools are lost, want at most %d; the second turn took %d requests", lost, test.lost, s.count()-before)
			}
		})
	}
}

func TestFieldsAreDroppedAndRemembered(t *testing.T) {
	t.Parallel()
	s, n := start(func(body map[string]any) (int, string) {
		if _, ok := body["user"]; ok {
			return 422, `{"detail":[{"type":"extra_forbidden","loc":["body","user"],"msg":"Extra inputs are not permitted"}]}`
		}
		if _, ok := body["max_tokens"]; ok {
			return 400, `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.","code":"unsupported_parameter","param":"max_tokens"}}`
		}
		return 0, ""
	})
	for range 3 {
		if _, err := n.Chat(t.Context(), hello(2), nil); err != nil {
			t.Fatal(err)
		}
	}
	l := n.Learnt()
	if s.count() != 5 || !slices.Equal(l.Omit, []string{"user"}) || l.Rename["max_tokens"] != "max_completion_tokens" || l.Safe || l.Spent != 2 {
		t.Errorf("%d requests, learnt %+v", s.count(), l)
	}
}

// TestAQuoteTeachesNothing: a refusal that quotes a person, and comes whatever is changed, disarms nobody, and costs no
// more than the budget.
func TestAQuoteTeachesNothing(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"a field":  `{"error":{"message":"Cannot process: 'user' is not supported, max_tokens is deprecated"}}`,
		"tools":    `{"error":{"message":"The message says: this model does not support tools"}}`,
		"a schema": `{"error":{"message":"invalid json schema in your message"}}`,
		"a tool":   `{"error":{"message":"Invalid schema for function 'mcp__tool_1'"}}`,
		"nothing":  `{"error":{"message":"Bad Request"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, n := start(func(body map[string]any) (int, string) {
				if strings.Contains(fmt.Sprint(body["messages"]), "poison") {
					return 400, refusal
				}
				return 0, ""
			})
			for i := range 30 {
				req := hello(20)
				req.Messages[0].Text = fmt.Sprint("poison ", i)
				before := s.count()
				if _, err := n.Chat(t.Context(), req, nil); err == nil {
					t.Fatal("no error")
				}
				if i > 12 && s.count()-before > 1+negotiate.Steps {
					t.Errorf("%d requests in turn %d", s.count()-before, i)
				}
			}
			if l := n.Learnt(); !l.Empty() || s.repeated > 0 {
				t.Errorf("learnt %+v, %d repeated", l, s.repeated)
			}
			if most := 30*(1+1) + negotiate.Budget; s.count() > most {
				t.Errorf("%d requests, want at most %d", s.count(), most)
			}
			if _, err := n.Chat(t.Context(), hello(20), nil); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestNoToolsAtAll: tools are given up only if the server refuses the smallest one too.
func TestNoToolsAtAll(t *testing.T) {
	t.Parallel()
	const words = `{"error":{"message":"m does not support tools"}}`
	s, n := start(func(body map[string]any) (int, string) {
		if len(toolsOf(body)) > 0 {
			return 400, words
		}
		return 0, ""
	})
	var shown strings.Builder
	for range 2 {
		if res, err := n.Chat(t.Context(), hello(5), func(text string) { shown.WriteString(text) }); err != nil || res.Text != "ok" {
			t.Fatalf("%v, %v", res, err)
		}
	}
	if s.count() != 4 || !slices.Contains(n.Learnt().Omit, negotiate.Tools) || shown.String() != "okok" || !strings.Contains(s.last(), "mcp:tool_1") {
		t.Errorf("%d requests, learnt %+v, shown %q, last %s", s.count(), n.Learnt(), shown.String(), s.last())
	}
	odd, n := start(func(body map[string]any) (int, string) {
		if slices.Contains(toolsOf(body), "mcp__tool_2") {
			return 400, words
		}
		return 0, ""
	})
	res, err := n.Chat(t.Context(), hello(5), nil)
	if err != nil || slices.Contains(n.Learnt().Omit, negotiate.Tools) || len(n.Learnt().Aside) != 1 || res.Usage.Input <= 10 {
		t.Errorf("%+v, %v, learnt %+v after %d requests", res, err, n.Learnt(), odd.count())
	}
}

// TestRolesThatAlternate: templates of Mistral's older models say the same of a system message as of two messages of one
// role.
func TestRolesThatAlternate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   []string
	}{
		"vLLM": {400, []string{"no_system", "alternate"}}, "llama.cpp": {500, []string{"no_system", "alternate"}},
	} {
		s, n := start(func(body map[string]any) (int, string) {
			messages, _ := body["messages"].([]any)
			if first, _ := messages[0].(map[string]any); first["role"] == "system" {
				return c.status, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/..."}}`
			}
			return 0, ""
		})
		for range 2 {
			req := hello(2)
			req.System = "You are a bot."
			if res, err := n.Chat(t.Context(), req, nil); err != nil || res.Text != "ok" {
				t.Fatalf("%s: %v, %v", name, res, err)
			}
		}
		if l := n.Learnt(); s.count() != 3 || !slices.Equal(l.History, c.want) {
			t.Errorf("%s: %d requests, learnt %+v", name, s.count(), l)
		}
	}
}

// TestManyMeetTheSameRefusal: one of them learns, the others wait.
func TestManyMeetTheSameRefusal(t *testing.T) {
	t.Parallel()
	s, n := start(func(body map[string]any) (int, string) {
		if _, ok := body["user"]; ok {
			return 400, `{"error":{"message":"Unknown parameter: 'user'.","param":"user"}}`
		}
		return refuseTools(`{"error":"bad json schema"}`, 9)(body)
	})
	const people = 50
	var running sync.WaitGroup
	for range people {
		running.Go(func() {
			if _, err := n.Chat(t.Context(), hello(16), func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if most := 2*people + negotiate.Budget; s.count() > most || n.Learnt().Spent > negotiate.Budget {
		t.Errorf("%d requests, want at most %d; learnt %+v", s.count(), most, n.Learnt())
	}
}

// TestKeysLearnTogether: providers of one server with different keys learn one at a time, and pay once.
func TestKeysLearnTogether(t *testing.T) {
	t.Parallel()
	s, _ := start(func(body map[string]any) (int, string) { return refuseTools(`{"error":"bad json schema"}`, 9)(body) })
	memory, learner := &dialect.Local{}, negotiate.NewLearner()
	const keys = 8
	var running sync.WaitGroup
	for range keys {
		n := negotiate.New(negotiate.Options{Provider: "main", Model: "m", Ask: s.ask, Memory: memory, Learner: learner})
		running.Go(func() {
			if _, err := n.Chat(t.Context(), hello(16), func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if most := 2*keys + negotiate.Budget; s.count() > most || memory.Recall("main", "m").Spent > negotiate.Budget {
		t.Errorf("%d requests, want at most %d; learnt %+v", s.count(), most, memory.Recall("main", "m"))
	}
}

// TestWhatIsNotAboutTheForm is passed on after one request.
func TestWhatIsNotAboutTheForm(t *testing.T) {
	t.Parallel()
	for status, refusal := range map[int]string{
		401: `{"error":{"message":"wrong key, tools not supported"}}`,
		429: `{"error":{"message":"too many tools"}}`,
		503: `{"error":{"message":"overloaded"}}`,
		404: `{"error":{"message":"The model 'user' does not exist","code":"model_not_found"}}`,
		400: `{"error":{"message":"This model's maximum context length is 8192 tokens, however you requested 9001 tokens (8001 in your messages and tools)","code":"context_length_exceeded"}}`,
	} {
		s, n := start(func(map[string]any) (int, string) { return status, refusal })
		if _, err := n.Chat(t.Context(), hello(3), nil); err == nil || s.count() != 1 {
			t.Errorf("%d: %v after %d requests", status, err, s.count())
		}
	}
}

// TestAnswersThatCostLess: what the account can still pay is asked for, and forgotten.
func TestAnswersThatCostLess(t *testing.T) {
	t.Parallel()
	s, n := start(func(body map[string]any) (int, string) {
		if body["max_tokens"].(float64) > 900 {
			return 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 1000 tokens, but can only afford 900"}}`
		}
		return 0, ""
	})
	if _, err := n.Chat(t.Context(), hello(1), nil); err != nil || s.count() != 2 || !n.Learnt().Empty() {
		t.Errorf("%v after %d requests, learnt %+v", err, s.count(), n.Learnt())
	}
}

// TestForgotten: another definition of a tool that was set aside is tried again, and after a week everything is.
func TestForgotten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	s := &server{refuse: refuseTools(`{"error":{"message":"bad","param":"tools[1].function.parameters"}}`, 1), refused: map[string]bool{}}
	n := negotiate.New(negotiate.Options{Provider: "main", Model: "m", Ask: s.ask, Now: func() time.Time { return now }})
	chat := func(req *llm.Request, want int) {
		t.Helper()
		before := s.count()
		if _, err := n.Chat(t.Context(), req, nil); err != nil || s.count()-before != want {
			t.Errorf("%v after %d requests, want %d", err, s.count()-before, want)
		}
	}
	chat(hello(3), 2)
	chat(hello(3), 1)
	other := hello(3)
	other.Tools[1].Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	chat(other, 2)
	chat(other, 1)
	now = now.Add(dialect.Forgotten + time.Hour)
	chat(other, 2)
}

// TestTheFormCostsNothing: a server that refuses nothing is asked as before.
func TestTheFormCostsNothing(t *testing.T) { //nolint:paralleltest // allocations are counted
	res := &llm.Response{}
	n := negotiate.New(negotiate.Options{Provider: "main", Model: "m", Ask: func(
		context.Context, *llm.Request, *media.Contents, *negotiate.Form, func(string),
	) (*llm.Response, *negotiate.Refusal, error) {
		return res, nil, nil
	}})
	req := hello(20)
	if count := testing.AllocsPerRun(100, func() { _, _ = n.Chat(t.Context(), req, nil) }); count > 0 {
		t.Errorf("%v allocations", count)
	}
}
