package ledgertest

import (
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// Body is what POST /chat/completions is asked with, as far as a fake model needs it.
type Body struct {
	Messages []Message `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// Message is a message of a Body.
type Message struct {
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

// failedMark is how the adapter of the wire says that a result is an error, which the wire cannot.
const failedMark = "[the tool reports a failure]\n"

// Request returns a body as a model in this process is asked.
func (b *Body) Request() *llm.Request {
	req := &llm.Request{}
	for _, t := range b.Tools {
		req.Tools = append(req.Tools, llm.Tool{Name: t.Function.Name})
	}
	for _, m := range b.Messages {
		out := llm.Message{Role: llm.Role(m.Role), Text: m.Content}
		for _, u := range m.ToolCalls {
			out.Uses = append(out.Uses, llm.ToolUse{
				ID:   u.ID,
				Name: u.Function.Name,
				Args: json.RawMessage(u.Function.Arguments),
			})
		}
		switch {
		case m.Role == "system":
			req.System = m.Content
			continue
		case m.ToolCallID != "":
			text, failed := strings.CutPrefix(m.Content, failedMark)
			out.Text, out.Result = "", &llm.ToolResult{ID: m.ToolCallID, Text: text, Error: failed}
		}
		req.Messages = append(req.Messages, out)
	}
	return req
}

// Frames splits an answer into the events of a stream: text and arguments in two halves, then the reason to stop.
func Frames(answer *llm.Response) []string {
	var out []string
	delta := func(delta any, finish any) {
		frame := map[string]any{
			"model": "scripted", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		}
		if finish != nil && answer.Usage.Total() > 0 {
			frame["usage"] = map[string]int{
				"prompt_tokens":     answer.Usage.Input,
				"completion_tokens": answer.Usage.Output,
			}
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
			"index":    i,
			"id":       u.ID,
			"type":     "function",
			"function": map[string]any{"name": u.Name, "arguments": string(u.Args[:half])},
		}}}, nil)
		delta(map[string]any{"tool_calls": []any{map[string]any{
			"index":    i,
			"function": map[string]any{"arguments": string(u.Args[half:])},
		}}}, nil)
	}
	finish := "stop"
	if len(answer.Uses) > 0 {
		finish = "tool_calls"
	}
	delta(map[string]any{}, finish)
	return out
}
