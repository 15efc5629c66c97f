package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// catcher records the body of a request and refuses it.
type catcher struct{ body []byte }

func (c *catcher) RoundTrip(req *http.Request) (*http.Response, error) {
	var err error
	if c.body, err = io.ReadAll(req.Body); err == nil && int64(len(c.body)) != req.ContentLength {
		err = fmt.Errorf("%d bytes, said to be %d", len(c.body), req.ContentLength)
	}
	return nil, err
}

// newCaught returns a provider whose requests are recorded.
func newCaught(tb testing.TB) (*Provider, *catcher) {
	tb.Helper()
	caught := &catcher{}
	p, err := New(Options{Name: "main", Model: "m", Key: "k", HTTPClient: &http.Client{Transport: caught}})
	if err != nil {
		tb.Fatal(err)
	}
	return p, caught
}

// requests are conversations that can each hit cached tools of earlier ones.
func requests() []*llm.Request {
	named := func(name, schema string) llm.Tool {
		return llm.Tool{Name: name, Description: "Runs <b> & more", Schema: json.RawMessage(schema)}
	}
	say := func(text string, uses ...string) []llm.Message {
		list := []llm.Message{{Role: llm.User, Text: text}}
		for i, name := range uses {
			id := fmt.Sprint("c", i)
			list = append(list, llm.Message{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: id, Name: name, Args: json.RawMessage(`{"tools":[0]}`)}}},
				llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: id, Name: name, Text: "ok"}})
		}
		return list
	}
	two := []llm.Tool{named("bash", `{"type": "object",  "properties":{"a":{"const":"<&>"}}}`), named("server:do it", `{{`)}
	return []*llm.Request{
		{Messages: say("no tools", "bash")},
		{Messages: say("first"), Tools: two, System: "s", User: standInJSON},
		{Messages: say("no system prompt"), Tools: two, System: " "},
		{Messages: say("again"), Tools: two, System: standInJSON, MaxTokens: 7},
		{Messages: say("used", "bash"), Tools: two, System: "s"},
		{Messages: say("used another that collides", "server__do_it", "gone:away"), Tools: two, System: "s"},
		{Messages: say("other order"), Tools: []llm.Tool{two[1], two[0]}, System: "s"},
		{Messages: say("fewer"), Tools: two[:1], System: "s"},
	}
}

// whole encodes a request in one piece, as the vendor's documentation shows it.
func whole(p *Provider, req *llm.Request) ([]byte, error) {
	names := wire.NamesOf(req)
	params := p.makeRequest(req, names, nil, nil)
	if len(req.Tools) > 0 {
		if _, err := new(wire.ToolCache).Of(req, &dialect.Schema{}, func(tools []wire.Tool) ([]byte, error) {
			for _, t := range listTools(tools, false) {
				params.Tools = append(params.Tools, t)
			}
			return nil, nil
		}); err != nil {
			return nil, err
		}
		if last := params.Tools[len(params.Tools)-1].(tool); strings.TrimSpace(req.System) == "" {
			last.Cache = ephemeralMark()
			params.Tools[len(params.Tools)-1] = last
		}
	}
	return llm.PlainJSON(params)
}

// TestToolsAreWrittenAsInOnePiece: caching the tools of a request changes no byte of it.
func TestToolsAreWrittenAsInOnePiece(t *testing.T) {
	t.Parallel()
	p, caught := newCaught(t)
	all := requests()
	for round := range 3 {
		if round == 2 { // the same cache with other contents
			copy(all[1].Tools[0].Schema, `{"type": "object",  "properties":{"b":`)
		}
		for i, req := range all {
			want, err := whole(p, req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Chat(t.Context(), req, nil); err == nil || !bytes.Equal(caught.body, want) {
				t.Errorf("round %d, request %d (%v): sent\n%s\nwant\n%s", round, i, err, caught.body, want)
			}
		}
	}
	if p.forms.Form().Boxes[0].Len() == 0 || p.forms.Form().Boxes[1].Len() == 0 {
		t.Error("no list is remembered")
	}
}

// BenchmarkTools sends a request with 14 tools.
func BenchmarkTools(b *testing.B) {
	p, _ := newCaught(b)
	req := &llm.Request{System: "s", Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
	for i := range 14 {
		req.Tools = append(req.Tools, llm.Tool{
			Name: fmt.Sprint("tool", i), Description: strings.Repeat("What it does. ", 30),
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("Where it is. ", 10) + `"}},"required":["path"]}`),
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.Chat(b.Context(), req, nil)
	}
}
