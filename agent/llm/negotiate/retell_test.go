package negotiate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// TestNoConversationIsDead: a history that a server refuses for whatever reason is sent once more as plain text; a
// request without a history, and a server that is down or knows no such model, are not.
func TestNoConversationIsDead(t *testing.T) {
	t.Parallel()
	talk := []llm.Message{
		{Role: llm.User, Text: "x"},
		{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: "a", Name: "read", Args: json.RawMessage("{}")}}},
		{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "a", Name: "read", Text: "found"}},
		{Role: llm.User, Text: "and?"},
	}
	for name, tt := range map[string]struct {
		status   int
		body     string
		messages []llm.Message
		retold   bool
	}{
		"no reason given":      {400, `{"error":{"message":"Invalid request."}}`, talk, true},
		"a message is named":   {400, `{"error":{"message":"messages.1: something about thinking blocks"}}`, talk, true},
		"a template fails":     {500, `{"error":{"message":"Jinja Exception: odd conversation"}}`, talk, true},
		"a status of another":  {404, `{"error":"odd tool_calls in the template"}`, talk, true},
		"no history":           {400, `{"error":{"message":"Invalid request."}}`, talk[:1], false},
		"the server is down":   {503, `{"error":{"message":"overloaded"}}`, talk, false},
		"the model is unknown": {404, `{"error":{"message":"model not found","code":"model_not_found"}}`, talk, false},
		"the key is wrong":     {401, `{"error":{"message":"messages need a key"}}`, talk, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			n := negotiate.New(negotiate.Options{Provider: "main", Model: "m", Ask: func(
				_ context.Context, req *llm.Request, _ *media.Contents, form *negotiate.Form, _ func(string),
			) (*llm.Response, *negotiate.Refusal, error) {
				raw, err := json.Marshal(map[string]any{"messages": req.Messages, "tools": req.Tools})
				if err != nil {
					return nil, nil, err
				}
				if err := form.Check(raw); err != nil {
					return nil, nil, err
				}
				asked++
				for _, m := range req.Messages {
					if len(m.Uses) > 0 || m.Result != nil || len(tt.messages) == 1 {
						c := complaint.Read(tt.status, nil, []byte(tt.body), time.Time{})
						return nil, &negotiate.Refusal{Complaint: &c, Body: raw, Names: wire.NamesOf(req)}, &llm.Error{Kind: c.Kind(), Status: tt.status, Err: errors.New(c.Text())}
					}
				}
				return &llm.Response{Text: "ok", Stop: llm.StopEnd}, nil, nil
			}})
			res, err := n.Chat(t.Context(), &llm.Request{Messages: tt.messages}, nil)
			if got := err == nil && res.Retold; got != tt.retold || asked > 5 {
				t.Errorf("answer %+v, %v after %d requests", res, err, asked)
			}
		})
	}
}
