package app

import (
	"encoding/json"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/tools"
)

// definitionsSize returns what the definitions of tools cost in each request of a turn without some of them: bytes, in
// the form that most servers take, and tokens.
func definitionsSize(t *testing.T, b *Bench, without ...string) (bytes, tokens int) {
	t.Helper()
	hidden := map[string]bool{}
	for _, name := range without {
		hidden[name] = true
	}
	turn := &agent.Turn{Tools: tools.Only(func(name string) bool { return !hidden[name] })}
	for _, o := range b.core.catalog.Tools(t.Context(), turn, agent.View{Step: 1}) {
		if o.Named {
			continue
		}
		function := map[string]any{"name": o.Name, "description": o.Description, "parameters": o.Schema}
		sent, err := json.Marshal(map[string]any{"type": "function", "function": function})
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(sent)
		tokens += window.Tool(llm.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema})
	}
	return bytes, tokens
}

// TestSeldomToolsCostLittle compares the requests of one program with and without tools that few turns need: together
// they cost a turn that does not use them less than a hundredth of all definitions.
func TestSeldomToolsCostLittle(t *testing.T) {
	t.Parallel()
	b := sayingBench(t)
	seldom := []string{"ask_user", "search_conversations", "update_plan"}
	withBytes, with := definitionsSize(t, b)
	bytes, tokens := definitionsSize(t, b, seldom...)
	plainBytes, plain := definitionsSize(t, b, catalog.SearchName)
	t.Logf("bytes and tokens with them: %d, %d; without: %d, %d; with all of them shown: %d, %d",
		withBytes, with, bytes, tokens, plainBytes, plain)
	if (withBytes-bytes)*100 >= bytes || (with-tokens)*100 >= tokens {
		t.Errorf("they cost %d bytes of %d and %d tokens of %d", withBytes-bytes, bytes, with-tokens, tokens)
	}
}
