//go:build unix

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// wireMessage is a message of POST /chat/completions.
type wireMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// modelServer speaks the OpenAI wire for a scripted model, which thus survives the bot.
type modelServer struct {
	*httptest.Server
	script *llmtest.Model
	// before the script is asked, during the answer, and after it but before its end
	hook func(ctx context.Context, phase string)
	// tokens of all answers, those included that nobody waited for any more
	answered atomic.Int64
}

func newModelServer(script *llmtest.Model, hook func(context.Context, string)) *modelServer {
	m := &modelServer{script: script, hook: hook}
	m.Server = httptest.NewServer(m)
	return m
}

// ServeHTTP implements http.Handler.
func (m *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []wireMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.hook(r.Context(), before)
	answer, err := m.script.Chat(r.Context(), conversation(body.Messages), nil)
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err.Error()), http.StatusBadRequest)
		return
	}
	m.answered.Add(int64(answer.Usage.Total()))
	w.Header().Set("Content-Type", "text/event-stream")
	pieces := frames(answer)
	for i, f := range pieces {
		if i == len(pieces)-1 {
			m.hook(r.Context(), after)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", f) // if the client has gone, the request's context ends
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		if i == 0 {
			m.hook(r.Context(), during)
		}
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func conversation(messages []wireMessage) *llm.Request {
	req := &llm.Request{}
	for _, m := range messages {
		out := llm.Message{Role: llm.Role(m.Role), Text: m.Content}
		for _, u := range m.ToolCalls {
			out.Uses = append(out.Uses, llm.ToolUse{ID: u.ID, Name: u.Function.Name, Args: json.RawMessage(u.Function.Arguments)})
		}
		switch {
		case m.Role == "system":
			req.System = m.Content
			continue
		case m.ToolCallID != "":
			out.Text, out.Result = "", &llm.ToolResult{ID: m.ToolCallID, Text: m.Content}
		}
		req.Messages = append(req.Messages, out)
	}
	return req
}

// frames splits an answer into the events of a stream: text and arguments in two halves, then the reason to stop.
func frames(answer *llm.Response) []string {
	var out []string
	delta := func(delta any, finish any) {
		frame := map[string]any{
			"model": "scripted", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		}
		if finish != nil && answer.Usage.Total() > 0 {
			frame["usage"] = map[string]int{"prompt_tokens": answer.Usage.Input, "completion_tokens": answer.Usage.Output}
		}
		raw, err := json.Marshal(frame)
		if err == nil { // maps of strings can always be encoded
			out = append(out, string(raw))
		}
	}
	half := len(answer.Text) / 2
	for _, text := range []string{answer.Text[:half], answer.Text[half:]} {
		if text != "" {
			delta(map[string]any{"content": text}, nil)
		}
	}
	for i, u := range answer.Uses {
		half := len(u.Args) / 2
		delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": u.ID, "type": "function", "function": map[string]any{"name": u.Name, "arguments": string(u.Args[:half])},
		}}}, nil)
		delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": string(u.Args[half:])}}}}, nil)
	}
	finish := "stop"
	if len(answer.Uses) > 0 {
		finish = "tool_calls"
	}
	delta(map[string]any{}, finish)
	return out
}
