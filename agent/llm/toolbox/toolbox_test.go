package toolbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/toolbox"
	"github.com/zephbot/zephbot/agent/llm/wirename"
)

// asking returns a request with one tool, whose history used others.
func asking(name, schema string, used ...string) *llm.Request {
	req := &llm.Request{Tools: []llm.Tool{{Name: name, Schema: json.RawMessage(schema)}}}
	for _, u := range used {
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Uses: []llm.ToolUse{{Name: u}}})
	}
	return req
}

// TestBox counts the requests whose tools are encoded again.
func TestBox(t *testing.T) {
	t.Parallel()
	var box toolbox.Box
	for i, step := range []struct {
		req    *llm.Request
		writes int
	}{
		{&llm.Request{}, 0},
		{asking("a:b", `{}`), 1},
		{asking("a:b", `{}`), 0},
		{asking("a:b", `{}`, "a:b"), 0},
		{asking("a:b", `{}`, "a__b"), 1}, // names of the history depend on those of the tools
		{asking("a:b", `{}`), 0},
		{asking("a:b", `{"type":"object"}`), 1},
		{asking("a:b", `{"type":"object"}`), 0},
		{asking("long", `"`+strings.Repeat("x", toolbox.MaxList)+`"`), 1},
		{asking("long", `"`+strings.Repeat("x", toolbox.MaxList)+`"`), 1}, // too long for the cache
	} {
		writes := 0
		names, text, err := box.Of(step.req, func(req *llm.Request, names *wirename.Names) ([]byte, error) {
			writes++
			return []byte(names.Encode(req.Tools[0].Name) + string(req.Tools[0].Schema)), nil
		})
		want := ""
		if len(step.req.Tools) > 0 {
			want = wirename.New(step.req).Encode(step.req.Tools[0].Name) + string(step.req.Tools[0].Schema)
		}
		if err != nil || names == nil || string(text) != want || writes != step.writes {
			t.Errorf("step %d: %.100q written %d times, %v; want %.100q, %d times", i, text, writes, err, want, step.writes)
		}
	}
	for i := range 2 * toolbox.MaxLists {
		if _, _, err := box.Of(asking(fmt.Sprint(i), `{}`), func(*llm.Request, *wirename.Names) ([]byte, error) { return []byte("x"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	if box.Len() != toolbox.MaxLists {
		t.Errorf("%d lists are remembered, want %d", box.Len(), toolbox.MaxLists)
	}
	broken := errors.New("broken")
	if _, _, err := box.Of(asking("new", `{}`), func(*llm.Request, *wirename.Names) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want that nothing can be written", err)
	}
}
