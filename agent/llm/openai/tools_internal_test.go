package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// catcher records the body of a request and refuses it.
type catcher struct{ body []byte }

func (c *catcher) RoundTrip(req *http.Request) (*http.Response, error) {
	var err error
	c.body, err = io.ReadAll(req.Body)
	if err == nil && int64(len(c.body)) != req.ContentLength {
		err = fmt.Errorf("%d bytes, said to be %d", len(c.body), req.ContentLength)
	}
	return nil, err
}

// requests are conversations that can each hit cached tools of earlier ones.
func requests() []*llm.Request {
	tool := func(name, description, schema string) llm.Tool {
		return llm.Tool{Name: name, Description: description, Schema: json.RawMessage(schema)}
	}
	plain := []llm.Tool{tool("bash", "Runs <b> & more", `{"type": "object",  "properties":{"a":{"type":"string"}}}`), tool("server:do it", "", `{{`)}
	say := func(text string, uses ...string) []llm.Message {
		list := []llm.Message{{Role: llm.User, Text: text}}
		for i, name := range uses {
			id := fmt.Sprint("c", i)
			list = append(list, llm.Message{Role: llm.Assistant, Uses: []llm.ToolUse{{
				ID: id, Name: name, Args: json.RawMessage(`{}`), Extra: json.RawMessage(`{"host":"model.example","fields":{"extra_content":{"x":1}}}`),
			}}}, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: id, Name: name, Text: "ok"}})
		}
		return list
	}
	return []*llm.Request{
		{Messages: say("no tools")},
		{Messages: say("first"), Tools: plain, System: "s", User: "u"},
		{Messages: say("again"), Tools: plain, MaxTokens: 7},
		{Messages: say("used", "bash"), Tools: plain},
		{Messages: say("used another that collides", "server__do_it", "gone:away"), Tools: plain},
		{Messages: say("after it"), Tools: plain},
		{Messages: say(`"tools":[{"type":""}]` + standInJSON + messagesInJSON), Tools: plain},
		{Messages: say("no tools" + messagesInJSON)},
		{Messages: []llm.Message{{Role: llm.User}, {Role: llm.Assistant, Text: "<b> & \u2028"}, {Role: llm.User, Text: "x", Parts: []llm.Part{{Name: "a.png"}}}}, System: "s"},
		{Messages: say("other order"), Tools: []llm.Tool{plain[1], plain[0]}},
		{Messages: say("fewer"), Tools: plain[:1]},
		{Messages: say("long"), Tools: []llm.Tool{tool("bash", strings.Repeat("x", wire.MaxToolList), `{}`)}},
	}
}

// sdkTools returns the tools of a request as the SDK takes them.
func sdkTools(tb testing.TB, req *llm.Request, responses bool) []goopenai.Tool {
	tb.Helper()
	var out []goopenai.Tool
	_, err := new(wire.ToolCache).Of(req, &dialect.Schema{}, func(list []wire.Tool) ([]byte, error) {
		for _, t := range list {
			tool := goopenai.Tool{Type: goopenai.ToolTypeFunction}
			if responses {
				tool.Parameters = map[string]any{"name": t.Name, "parameters": t.Schema, "strict": false}
				if t.Description != "" {
					tool.Parameters["description"] = t.Description
				}
			} else {
				tool.Function = &goopenai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Schema}
			}
			out = append(out, tool)
		}
		return nil, nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// TestToolsAreWrittenAsBefore: the request is byte for byte what the SDK encodes for the whole request.
func TestToolsAreWrittenAsBefore(t *testing.T) {
	t.Parallel()
	caught := &catcher{}
	p, err := New(Options{Name: "main", BaseURL: "https://model.example/v1", Model: "m", HTTPClient: &http.Client{Transport: caught}})
	if err != nil {
		t.Fatal(err)
	}
	chat, responses := &completions{provider: p, origin: "model.example"}, &responses{provider: p, origin: "model.example"}
	list := requests()
	for round := range 3 {
		if round == 2 { // the same cache with other contents
			copy(list[1].Tools[0].Schema, `{"type": "object",  "properties":{"b":`)
		}
		for i, req := range list {
			names := wire.NamesOf(req)
			body := chat.makeRequest(req, sdkTools(t, req, false))
			body.Stream = true
			want, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			form := chat.messageForm(&p.o.Dialect, nil)
			messages, err := chat.makeMessages(form, form.Request(req), names, nil)
			if err != nil {
				t.Fatal(err)
			}
			want = bytes.Replace(want, []byte(messagesInJSON), append([]byte(`"messages":`), messages...), 1)
			if _, err := chat.chat(t.Context(), conversing(p), req, nil, func(string) {}); err == nil || !bytes.Equal(caught.body, want) {
				t.Errorf("round %d, chat %d (%v): sent\n%.2000s\nwant\n%.2000s", round, i, err, caught.body, want)
			}
			other := responses.makeRequest(form.Request(req), names, nil, true, sdkTools(t, req, true))
			other.Stream = true
			if want, err = json.Marshal(other); err != nil {
				t.Fatal(err)
			}
			if _, err := responses.chat(t.Context(), conversing(p), req, nil, func(string) {}); err == nil || !bytes.Equal(caught.body, want) {
				t.Errorf("round %d, responses %d (%v): sent\n%.2000s\nwant\n%.2000s", round, i, err, caught.body, want)
			}
		}
	}
	if n := p.forms.Form().Boxes[0].Len(); n == 0 || n > wire.MaxToolLists {
		t.Errorf("%d lists are remembered", n)
	}
}

// conversing returns the exchange of a conversation.
func conversing(p *Provider) *exchange {
	x := p.newExchange()
	x.form = p.forms.Form()
	return x
}

// BenchmarkTools encodes a request with 14 tools, with the cache and with the SDK.
func BenchmarkTools(b *testing.B) {
	p, err := New(Options{Name: "main", BaseURL: "https://model.example/v1", Model: "m", HTTPClient: &http.Client{Transport: &catcher{}}})
	if err != nil {
		b.Fatal(err)
	}
	chat := &completions{provider: p}
	req := &llm.Request{System: "s", Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
	for i := range 14 {
		req.Tools = append(req.Tools, llm.Tool{
			Name: fmt.Sprint("tool", i), Description: strings.Repeat("What it does. ", 30),
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("Where it is. ", 10) + `"}},"required":["path"]}`),
		})
	}
	b.Run("once", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = chat.chat(b.Context(), conversing(p), req, nil, func(string) {})
		}
	})
	b.Run("each time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = p.newSDK(p.newExchange()).CreateChatCompletionStream(b.Context(), chat.makeRequest(req, sdkTools(b, req, false)))
		}
	})
}
