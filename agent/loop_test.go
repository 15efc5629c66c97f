package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/tools"
)

func TestIterations(t *testing.T) {
	t.Parallel()
	steps := make([]llmtest.Step, 0, 20)
	for i := range 20 {
		steps = append(steps, llmtest.Step{Uses: []llm.ToolUse{{Name: "echo", Args: fmt.Appendf(nil, `{"text":"%d"}`, i)}}})
	}
	for limit, want := range map[int]int{0: 10, 1: 1, 3: 3, -1: 20} {
		m := llmtest.New(steps...)
		w := newWorld(t, m, "go")
		w.limits.Iterations = limit
		out := w.must(t.Context())
		if out.Kind != agent.Ended || out.Stats.Steps != want {
			t.Errorf("limit %d: %s %s after %d steps, want %d", limit, out.Kind, out.Reason, out.Stats.Steps, want)
		}
		if reason := map[bool]string{true: journal.ReasonLimit, false: journal.ReasonModel}[limit >= 0]; out.Reason != reason {
			t.Errorf("limit %d: reason %s", limit, out.Reason)
		}
	}
}

func TestDoomLoop(t *testing.T) {
	t.Parallel()
	n := 0
	clock := tools.Tool{
		Definition: tools.Definition{Name: "clock", ReadOnly: true, Schema: []byte(`{"type":"object"}`)},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			n++ // one call per step: never concurrent
			return &tools.Result{Text: fmt.Sprintf("it is %d", n)}, nil
		},
	}
	long := tools.Tool{
		Definition: tools.Definition{Name: "long", ReadOnly: true, Schema: []byte(`{"type":"object"}`)},
		Run: func(_ context.Context, call *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "cut; the rest is overflow:0f8fad5b-d9cb-469f-a165-7086" + fmt.Sprintf("%08d", len(call.ID)+int(call.Batch))}, nil
		},
	}
	same, other := `call echo {"text":"<same> & more"}`, `call echo {"text":"other"}`
	tests := []struct {
		name    string
		steps   []string
		repeats int
		kind    agent.OutcomeKind
		text    string
		asked   int
	}{
		{"three", []string{same, same, same, same}, 0, agent.Ended, "<same> & more", 3},
		{"two", []string{same, same, "say Done"}, 0, agent.Answered, "Done", 3},
		{"interrupted", []string{same, same, other, same, same, "say Done"}, 0, agent.Answered, "Done", 6},
		{"late", []string{other, same, same, same, same}, 0, agent.Ended, "<same> & more", 4},
		{"another result", []string{"call clock {}", "call clock {}", "call clock {}", "call clock {}", "say Done"}, 0, agent.Answered, "Done", 5},
		{"only the name of the rest differs", []string{"call long {}", "call long {}", "call long {}", "say Done"}, 0, agent.Ended, "cut; the rest", 3},
		{"off", []string{same, same, same, same, "say Done"}, -1, agent.Answered, "Done", 5},
	}
	for _, tt := range tests {
		m := script(t, "on \"go\": "+strings.Join(tt.steps, "\nthen "))
		w := newWorld(t, m, "go", clock, long)
		w.limits.Repeats = tt.repeats
		out := w.must(t.Context())
		if out.Kind != tt.kind || !strings.HasPrefix(out.Text, tt.text) || len(m.Requests()) != tt.asked {
			t.Errorf("%s: %d requests, outcome %+v", tt.name, len(m.Requests()), out)
		}
		if tt.kind == agent.Ended && out.Reason != journal.ReasonLoop {
			t.Errorf("%s: reason %s", tt.name, out.Reason)
		}
	}
}

func TestDoomLoopOverRestarts(t *testing.T) {
	t.Parallel()
	step := `call count {"by": 10}`
	w := newWorld(t, script(t, "on \"go\": "+step+"\nthen "+step+"\nthen "+step+"\nthen say Done"), "go",
		tools.Tool{Definition: tools.Definition{Name: "x"}, Run: func(context.Context, *tools.Call) (*tools.Result, error) { return nil, nil }})
	w.replace(tools.Tool{
		Definition: tools.Definition{Name: "count", Schema: []byte(`{"type":"object"}`)},
		Describe: func(context.Context, *tools.Call) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{"10"}}, nil
		},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "no change <>"}, nil
		},
	})
	if out := w.finish(t.Context()); out.Reason != journal.ReasonLoop || out.Text != "no change <>" {
		t.Errorf("each step is run by another process, and the loop is not detected: %+v", out)
	}
}
