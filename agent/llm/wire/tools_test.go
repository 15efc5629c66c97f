package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
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
	var box wire.ToolCache
	full, ok := dialect.Named("openai")
	if !ok {
		t.Fatal("no dialect")
	}
	safe := &dialect.Schema{}
	for i, step := range []struct {
		req    *llm.Request
		of     *dialect.Schema
		writes int
	}{
		{&llm.Request{}, safe, 0},
		{asking("a:b", `{}`), safe, 1},
		{asking("a:b", `{}`), safe, 0},
		{asking("a:b", `{}`, "a:b"), safe, 0},
		{asking("a:b", `{}`, "a__b"), safe, 1}, // names of the history depend on those of the tools
		{asking("a:b", `{}`), safe, 0},
		{asking("a:b", `{"type":"object"}`), safe, 1},
		{asking("a:b", `{"type":"object"}`), safe, 0},
		{asking("a:b", `{"properties":{"a":{}}}`), safe, 1},
		{asking("a:b", `{"properties":{"a":{}}}`), &full.Schema, 1}, // another server, or something was learnt of this one
		{asking("a:b", `{"properties":{"a":{}}}`), safe, 0},
		{asking("a:b", `{"properties":{"a":{}}}`), &full.Schema, 0},
		{asking("long", `{"description":"`+strings.Repeat("x", wire.MaxToolList*3/4)+`","title":"`+strings.Repeat("x", wire.MaxToolList/8)+`"}`), safe, 1},
		{asking(strings.Repeat("long", wire.MaxToolList), `{}`), safe, 1},
		{asking(strings.Repeat("long", wire.MaxToolList), `{}`), safe, 1}, // too long for the cache
	} {
		writes := 0
		write := func(list []wire.Tool) ([]byte, error) {
			writes++
			if len(step.req.Tools[0].Name) > wire.MaxToolList {
				return []byte(step.req.Tools[0].Name), nil
			}
			return []byte(list[0].Name + string(list[0].Schema)), nil
		}
		got, err := box.Of(step.req, step.of, write)
		if err != nil {
			t.Fatal(err)
		}
		counted := writes
		want, err := new(wire.ToolCache).Of(step.req, step.of, write)
		if err != nil || got.Names == nil || !bytes.Equal(got.Text, want.Text) || counted != step.writes {
			t.Errorf("step %d: %.100q written %d times, %v; want %.100q, %d times", i, got.Text, counted, err, want.Text, step.writes)
		}
	}
	for i := range 2 * wire.MaxToolLists {
		if _, err := box.Of(asking(fmt.Sprint(i), `{}`), safe, func([]wire.Tool) ([]byte, error) { return []byte("x"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	if box.Len() != wire.MaxToolLists {
		t.Errorf("%d lists are remembered, want %d", box.Len(), wire.MaxToolLists)
	}
	broken := errors.New("broken")
	if _, err := box.Of(asking("new", `{}`), safe, func([]wire.Tool) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want that nothing can be written", err)
	}
}

// TestTooManyTools: a server gets as many tools as it takes, our own ones among them, and the model is told of the rest.
func TestTooManyTools(t *testing.T) {
	t.Parallel()
	req := &llm.Request{System: "Be kind."}
	for i := range 120 {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprint("server:t", i), Schema: json.RawMessage(`{}`)})
	}
	for i := range 10 {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprint("own", i), Schema: json.RawMessage(`{}`)})
	}
	for _, c := range []struct {
		most, offered, foreign int
	}{{0, 128, 118}, {128, 128, 118}, {200, 130, 120}, {20, 20, 10}, {4, 4, 0}} {
		var box wire.ToolCache
		var names []string
		got, err := box.Of(req, &dialect.Schema{MaxTools: c.most}, func(list []wire.Tool) ([]byte, error) {
			for _, tool := range list {
				names = append(names, tool.Name)
			}
			return []byte("x"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		foreign := 0
		for _, name := range names {
			if strings.HasPrefix(name, "server__") {
				foreign++
			}
		}
		if len(names) != c.offered || foreign != c.foreign || len(got.Left) != len(req.Tools)-c.offered {
			t.Errorf("at most %d: %d offered, %d of them of the server, %d left out", c.most, len(names), foreign, len(got.Left))
		}
		noted := got.Noted(req)
		if len(got.Left) == 0 && noted != req || len(got.Left) > 0 && !strings.Contains(noted.System, got.Left[0]) || req.System != "Be kind." {
			t.Errorf("at most %d: the model reads %q", c.most, noted.System)
		}
	}
}
