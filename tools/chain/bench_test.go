package chain_test

import (
	"encoding/json"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// BenchmarkCall measures what the mandatory stages add to a call of a tool that does nothing.
func BenchmarkCall(b *testing.B) {
	list, err := tools.NewRegistry(toolstest.Echo())
	if err != nil {
		b.Fatal(err)
	}
	c := chain.New(chain.Options{Registry: list, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}})
	args := json.RawMessage(`{"text":"hi"}`)
	b.ReportAllocs()
	for b.Loop() {
		call := toolstest.Call("echo", "")
		call.Args = args
		if _, err := c.Execute(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
