package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
)

// TestNoAnswer: what comes with status 200 and is no answer is read for what it says, else the address is named.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply reply
		kind  llm.Kind
		says  string
		blank bool
	}{
		"FastAPI's key":     {reply{body: `{"detail":"Invalid API key"}`}, llm.Unauthorized, "Invalid API key", false},
		"a code":            {reply{body: `{"code":401,"msg":"no token"}`}, llm.Unauthorized, "no token", false},
		"credit":            {reply{body: `{"error":"insufficient balance"}`}, llm.NoCredit, "insufficient balance", false},
		"words of a key":    {reply{body: "Unauthorized\n"}, llm.Unauthorized, "Unauthorized", false},
		"a message":         {reply{body: `{"message":"hello"}`}, llm.WrongAddress, "base_url", false},
		"an error as text":  {reply{body: `{"error":"nope"}`}, llm.WrongAddress, "base_url", false},
		"plain text":        {reply{body: "It works!"}, llm.WrongAddress, "base_url", false},
		"Ollama's lines":    {reply{body: `{"message":{"content":"a"},"done":false}` + "\n" + `{"message":{"content":""},"done":true}` + "\n"}, llm.WrongAddress, "/v1", false},
		"OpenAI's events":   {reply{body: "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"}, llm.WrongAddress, `type = "openai"`, false},
		"OpenAI's answer":   {reply{body: `{"object":"chat.completion","choices":[{"message":{"content":"hi"}}]}`}, llm.WrongAddress, `type = "openai"`, false},
		"an empty body":     {reply{}, llm.Truncated, "nothing in it", true},
		"no content":        {reply{status: 204}, llm.Truncated, "nothing in it", true},
		"an end alone":      {reply{body: "data: [DONE]\n\n"}, llm.Truncated, "nothing in it", true},
		"keepalives":        {reply{body: "event: ping\ndata: {\"type\":\"ping\"}\n\n"}, llm.Truncated, "nothing in it", true},
		"a page":            {reply{body: "<html><title>Sign in</title></html>"}, llm.WrongAddress, "web page", false},
		"no such path":      {reply{status: 404, body: `{"detail":"Not Found"}`}, llm.WrongAddress, "base_url", false},
		"an unknown model":  {reply{status: 404, body: `{"type":"error","error":{"type":"not_found_error","message":"model: m-1"}}`}, llm.UnknownModel, "m-1", false},
		"Cloudflare":        {reply{status: 403, body: "<html><title>Just a moment...</title></html>"}, llm.WrongAddress, "gateway", false},
		"a redirect":        {reply{status: 308, header: map[string]string{"Location": "https://b.example/"}}, llm.WrongAddress, "https://b.example/", false},
		"too large a body":  {reply{status: 413, body: "<html><title>413 Request Entity Too Large</title></html>"}, llm.TooLong, "", false},
		"begun and not end": {reply{body: sse(begin)}, llm.Truncated, "stop_reason", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.reply)
			_, err := provider(t, s, nil).Chat(t.Context(), hi(), nil)
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != tt.kind || e.Blank != tt.blank || !strings.Contains(err.Error(), tt.says) || e.Kind == llm.WrongAddress && !strings.Contains(err.Error(), s.URL) {
				t.Errorf("%v, blank %t; want %+v", err, ok && e.Blank, tt)
			}
		})
	}
}

// TestFiltered: an answer that ends with a refusal after its beginning is told apart from one that never began.
func TestFiltered(t *testing.T) {
	t.Parallel()
	for body, filtered := range map[string]bool{stream("refusal", text(0, "Take two")): true, stream("refusal"): false, stream("end_turn", text(0, "a")): false} {
		res, err := provider(t, serve(t, reply{body: body}), nil).Chat(t.Context(), hi(), nil)
		if err != nil || res.Filtered != filtered || filtered && res.Stop != llm.StopRefusal {
			t.Errorf("%+v, %v, want %t", res, err, filtered)
		}
	}
}
