package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// serverID is the referee's server in the configuration. On the model's wire the name of a tool follows it after two
// underscores.
const serverID = "referee"

const (
	ready   = "go"                     // the person's message that has the model call
	done    = "Every tool was called." // what it answers in the end
	nothing = "There is no tool to call."
)

// model speaks the OpenAI wire. It calls every tool of the server once, all in one answer, and then says that it is
// done.
type model struct {
	context string // of the scenario
}

// request is what matters of POST /chat/completions.
type request struct {
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

// ServeHTTP implements http.Handler.
func (m model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	delta, finish, err := m.answer(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []map[string]any{{"index": 0, "delta": delta}, {"index": 0, "delta": map[string]any{}, "finish_reason": finish}} {
		frame, err := json.Marshal(map[string]any{"model": "scripted", "choices": []any{choice}})
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", frame) // a client that is gone reads nothing
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m model) answer(req request) (delta map[string]any, finish string, err error) {
	if len(req.Messages) == 0 {
		return nil, "", errors.New("no messages")
	}
	say := func(text string) (map[string]any, string, error) {
		return map[string]any{"role": "assistant", "content": text}, "stop", nil
	}
	if req.Messages[len(req.Messages)-1].Role == "tool" {
		return say(done)
	}
	var tools []offered
	for _, t := range req.Tools {
		if name, ok := strings.CutPrefix(t.Function.Name, serverID+"__"); ok {
			tools = append(tools, offered{name: name, schema: t.Function.Parameters})
		}
	}
	list, err := wishes(tools, m.context)
	if err != nil {
		return nil, "", err
	}
	if len(list) == 0 {
		return say(nothing)
	}
	var calls []any
	for i, w := range list {
		calls = append(calls, map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function",
			"function": map[string]any{"name": serverID + "__" + w.Name, "arguments": string(w.Arguments)},
		})
	}
	return map[string]any{"role": "assistant", "tool_calls": calls}, "tool_calls", nil
}
