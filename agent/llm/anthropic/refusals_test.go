package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// TestRefusedForms: what a server with this API refuses by its place in the request is left out, and the request is
// answered.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	type body struct {
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Metadata    json.RawMessage `json:"metadata"`
		Temperature json.RawMessage `json:"temperature"`
	}
	at := func(b *body, name string) int {
		for i := range b.Tools {
			if strings.Contains(b.Tools[i].Name, name) {
				return i
			}
		}
		return -1
	}
	for name, tt := range map[string]struct {
		set     string // a field that the dialect sets: temperature
		refuse  func(b *body) string
		learned func(l *dialect.Learnt) bool
	}{
		"a tool by its place": {"", func(b *body) string {
			if i := at(b, "create_issue"); i >= 0 {
				return fmt.Sprintf("tools.%d.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12", i)
			}
			return ""
		}, func(l *dialect.Learnt) bool { return len(l.Aside) == 1 && l.Aside[0].Tool == "github:create_issue" }},
		"combinators at the root": {"", func(b *body) string {
			if i := at(b, "create_issue"); i >= 0 {
				return fmt.Sprintf("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
			return ""
		}, func(l *dialect.Learnt) bool { return len(l.Aside) == 1 && l.Aside[0].Tool == "github:create_issue" }},
		"a field that is deprecated": {"0.5", func(b *body) string {
			if b.Temperature != nil {
				return "`temperature` is deprecated for this model."
			}
			return ""
		}, func(l *dialect.Learnt) bool { return strings.Join(l.Omit, " ") == "temperature" && len(l.Aside) == 0 }},
		"a field that is unknown": {"", func(b *body) string {
			if b.Metadata != nil {
				return "metadata: Extra inputs are not permitted"
			}
			return ""
		}, func(l *dialect.Learnt) bool { return strings.Join(l.Omit, " ") == "metadata" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				requests.Add(1)
				raw, err := io.ReadAll(req.Body)
				var b body
				if err == nil {
					err = json.Unmarshal(raw, &b)
				}
				if err != nil {
					t.Errorf("read request: %v", err)
				}
				if words := tt.refuse(&b); words != "" {
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]string{"type": "invalid_request_error", "message": words}})
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, stream("end_turn", text(0, "fine")))
			}))
			t.Cleanup(s.Close)
			memory := &dialect.Local{}
			p, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: s.URL + "/v1", Key: key, Model: "m-1", HTTPClient: s.Client(), Memory: memory, Dialect: dialect.Dialect{
				Params: dialect.Params{Set: setting(tt.set)},
			}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if res, err := p.Chat(t.Context(), hi(), nil); err != nil || res.Text != "fine" {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			if l := memory.Recall("main", "m-1"); l == nil || !tt.learned(l) {
				t.Errorf("learnt %+v", l)
			}
			if n := requests.Load(); n > 6 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func setting(temperature string) map[string]json.RawMessage {
	if temperature == "" {
		return nil
	}
	return map[string]json.RawMessage{"temperature": json.RawMessage(temperature)}
}

// TestWholeAnswer: a server that does not stream answers with the message as a whole, and it means the same.
func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	whole := `{"id":"x","type":"message","role":"assistant","model":"m-1-real","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"u1","name":"read","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":5}}`
	s := serve(t, reply{header: map[string]string{"Content-Type": "application/json"}, body: whole})
	res, err := provider(t, s, nil).Chat(t.Context(), hi(), nil)
	if err != nil || res.Text != "I look." || len(res.Uses) != 1 || res.Uses[0].Name != "read" || string(res.Uses[0].Args) != `{"a":1}` || res.Stop != llm.StopTools ||
		res.Usage.Input != 10 || res.Usage.Output != 5 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestFullWindow: an answer that says nothing, because the conversation fills the window, is an overflow.
func TestFullWindow(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"max_tokens", "model_context_window_exceeded"} {
		s := serve(t, reply{body: strings.ReplaceAll(stream(reason), `"input_tokens":100`, `"input_tokens":7000`)})
		req := hi()
		req.Window = 8192
		_, err := provider(t, s, nil).Chat(t.Context(), req, nil)
		if llm.KindOf(err) != llm.TooLong {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestRefusedBlocks: a server that wants texts as strings gets them, and what cannot be one stays a list.
func TestRefusedBlocks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refuses func(body map[string]any) bool
		words   string
	}{
		"the system prompt": {func(b map[string]any) bool { _, list := b["system"].([]any); return list }, `{"detail":[{"type":"string_type","loc":["body","system"],"msg":"Input should be a valid string","input":[]}]}`},
		"of a union":        {func(b map[string]any) bool { _, list := b["system"].([]any); return list }, `{"detail":[{"type":"string_type","loc":["body","system","str"],"msg":"Input should be a valid string"}]}`},
		"in words alone":    {func(b map[string]any) bool { _, list := b["system"].([]any); return list }, `{"error":{"message":"json: cannot unmarshal array into Go struct field .system of type string"}}`},
		"a message": {func(b map[string]any) bool {
			_, list := b["messages"].([]any)[0].(map[string]any)["content"].([]any)
			return list
		}, `{"detail":[{"type":"string_type","loc":["body","messages",0,"content"],"msg":"Input should be a valid string"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				requests.Add(1)
				var body map[string]any
				if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
					t.Errorf("read request: %v", err)
				}
				if tt.refuses(body) {
					w.WriteHeader(http.StatusUnprocessableEntity)
					_, _ = io.WriteString(w, tt.words)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, stream("end_turn", text(0, "fine")))
			}))
			t.Cleanup(s.Close)
			p, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: s.URL, Key: key, Model: "m-1", HTTPClient: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			req := hi()
			req.System = "Be kind."
			for range 2 {
				if res, err := p.Chat(t.Context(), req, nil); err != nil || res.Text != "fine" {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			if n := requests.Load(); n != 3 { // the first refusal, and two answers
				t.Errorf("%d requests", n)
			}
		})
	}
}
