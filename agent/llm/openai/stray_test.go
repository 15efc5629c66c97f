package openai_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// TestNoAnswer: what comes with status 200 and is no answer is read for what it says, else the address is named. What has
// nothing in it can be a hiccup.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	type want struct {
		kind  llm.Kind
		says  string
		blank bool
	}
	address := want{llm.WrongAddress, "base_url", false}
	blank := want{llm.Truncated, "", true}
	const ndjson = `{"model":"m","created_at":"x","message":{"role":"assistant","content":"unauthorized"},"done":false}` + "\n" +
		`{"model":"m","created_at":"x","message":{"role":"assistant","content":""},"done":true}` + "\n"
	for name, tt := range map[string]struct {
		reply reply
		want  want
	}{
		"FastAPI's key":          {reply{body: `{"detail":"Invalid API key"}`}, want{llm.Unauthorized, "Invalid API key", false}},
		"a code":                 {reply{body: `{"code":401,"msg":"no token"}`}, want{llm.Unauthorized, "no token", false}},
		"credit":                 {reply{body: `{"message":"insufficient balance"}`}, want{llm.NoCredit, "insufficient balance", false}},
		"an unknown model":       {reply{body: `{"error":"model \"m\" not found"}`}, want{llm.UnknownModel, "not found", false}},
		"an overflow":            {reply{body: `{"error":"the prompt is too long for the context window"}`}, want{llm.TooLong, "", false}},
		"load":                   {reply{body: `{"code":503,"msg":"the server is busy"}`}, want{llm.Unavailable, "busy", false}},
		"words of a key":         {reply{body: "Unauthorized\n"}, want{llm.Unauthorized, "Unauthorized", false}},
		"a key in an event":      {reply{body: sse(`{"detail":"Invalid API key"}`)}, want{llm.Unauthorized, "Invalid", false}},
		"a message":              {reply{body: `{"message":"hello"}`}, address},
		"an error as text":       {reply{body: `{"error":"nope"}`}, address},
		"a code nobody knows":    {reply{body: `{"code":7,"msg":"nope"}`}, address},
		"plain text":             {reply{body: "It works!"}, address},
		"text like JSON":         {reply{body: "{it works}"}, address},
		"an object":              {reply{body: `{}`}, address},
		"Ollama's lines":         {reply{body: ndjson}, want{llm.WrongAddress, "let base_url end with /v1", false}},
		"Anthropic's events":     {reply{body: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n"}, want{llm.WrongAddress, `type = "anthropic"`, false}},
		"Gemini's answer":        {reply{body: `{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}`}, want{llm.WrongAddress, "/v1beta/openai", false}},
		"an empty body":          {reply{}, blank},
		"no content":             {reply{status: 204}, blank},
		"an end alone":           {reply{body: "data: [DONE]\n\n"}, blank},
		"keepalives and an end":  {reply{body: ": ping\n\ndata: {\"type\":\"ping\"}\n\ndata: [DONE]\n\n"}, blank},
		"a page":                 {reply{body: "<html><title>Sign in</title></html>"}, address},
		"a redirect":             {reply{status: 302, header: map[string]string{"Location": "/login"}}, want{llm.WrongAddress, "/login", false}},
		"no such path":           {reply{status: 404, body: `{"detail":"Not Found"}`}, address},
		"no such method":         {reply{status: 405}, address},
		"Cloudflare":             {reply{status: 403, body: "<html><title>Just a moment...</title></html>"}, want{llm.WrongAddress, "gateway", false}},
		"a body that is too big": {reply{status: 413, body: "<html><title>413 Request Entity Too Large</title></html>"}, want{llm.TooLong, "", false}},
	} {
		for _, wire := range []string{openai.WireChat, openai.WireResponses} {
			t.Run(name+", "+wire, func(t *testing.T) {
				t.Parallel()
				s := serve(t, tt.reply)
				_, err := provider(t, s, func(o *openai.Options) { o.Wire = wire }).Chat(t.Context(), hi(), nil)
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Kind != tt.want.kind || e.Blank != tt.want.blank || !strings.Contains(err.Error(), tt.want.says) || e.Kind == llm.WrongAddress && !strings.Contains(err.Error(), s.URL) {
					t.Errorf("%v, blank %t; want %+v", err, ok && e.Blank, tt.want)
				}
				s.request(t) // no second one
			})
		}
	}
}
