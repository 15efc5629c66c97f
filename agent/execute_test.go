package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/tools"
)

// crowd counts how many calls run at once.
type crowd struct {
	mu             sync.Mutex
	now, most, all int
}

// tool returns a tool that runs for a second.
func (c *crowd) tool(name string, readOnly bool) tools.Tool {
	return tools.Tool{
		Definition: tools.Definition{Name: name, Schema: []byte(`{"type":"object"}`), ReadOnly: readOnly},
		Run: func(ctx context.Context, _ *tools.Call) (*tools.Result, error) {
			c.add(1)
			defer c.add(-1)
			select {
			case <-time.After(time.Second):
				return &tools.Result{Text: "done"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

func (c *crowd) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.all = c.now+n, c.all+max(n, 0)
	c.most = max(c.most, c.now)
}

func uses(n int, name, args string) (list []llm.ToolUse) {
	for range n {
		list = append(list, llm.ToolUse{Name: name, Args: []byte(args)})
	}
	return list
}

// TestParallel: the limit of calls at once is that of the whole turn, with its sub-agents. All of them get their turn,
// also if there is only one slot.
func TestParallel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ children, own, parallel, most int }{
		{children: 0, own: 6, parallel: 4, most: 4},
		{children: 4, own: 0, parallel: 4, most: 4},
		{children: 1, own: 3, parallel: 4, most: 4},
		{children: 6, own: 5, parallel: 3, most: 3},
		{children: 3, own: 2, parallel: 1, most: 1},
		{children: 3, own: 2, parallel: -1, most: 3*5 + 2},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := llmtest.New()
				work := uses(c.own, "look", `{}`)
				for i := range c.children {
					task := fmt.Sprintf("task %d", i)
					work = append(work, uses(1, "delegate", `{"task":"`+task+`","tools":["look","alter"]}`)...)
					m.On(task, llmtest.Step{Uses: append(uses(5, "look", `{}`), uses(2, "alter", `{}`)...)}, llmtest.Step{Text: "looked"})
				}
				m.On("go", llmtest.Step{Uses: work}, llmtest.Step{Text: "Done"})
				seen := &crowd{}
				w := newOffice(t, m, "go", seen.tool("look", true), seen.tool("alter", false))
				w.limits.Parallel = c.parallel
				if out := w.finish(t.Context()); out.Text != "Done" {
					t.Fatalf("outcome %+v", out)
				}
				if seen.most != c.most || seen.all != c.own+c.children*7 {
					t.Errorf("%d calls, at most %d at once, want %d", seen.all, seen.most, c.most)
				}
			})
		})
	}
}

// TestParallelStopped: a turn that is stopped while calls wait for a slot ends at once, and says of each call that it
// was stopped.
func TestParallelStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := llmtest.New().On("go", llmtest.Step{Uses: append(uses(3, "delegate", `{"task":"work","tools":["look"]}`), uses(3, "look", `{}`)...)})
		m.On("work", llmtest.Step{Uses: uses(3, "look", `{}`)})
		seen := &crowd{}
		w := newOffice(t, m, "go", seen.tool("look", true))
		w.limits.Parallel = 1
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(1500*time.Millisecond, func() { cancel(agent.ErrStopped) })
		out := w.must(ctx)
		if took := time.Since(began); out.Kind != agent.Ended || took != 1500*time.Millisecond || seen.all != 2 {
			t.Fatalf("ended after %v and %d calls: %+v", took, seen.all, out)
		}
		kid := w.children()[0]
		for i, text := range append(w.of(kid), w.of("")...) {
			if stopped := strings.Contains(text, "stopped"); stopped != (i > 0) {
				t.Errorf("result %d: %q", i, text)
			}
		}
	})
}
