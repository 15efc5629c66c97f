package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/policy"
	secrets "github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/delegate"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// plain returns a tool that only says its name.
func plain(name, server string, readOnly bool) tools.Tool {
	return tools.Tool{
		Definition: tools.Definition{Name: name, Schema: []byte(`{"type":"object"}`), ReadOnly: readOnly, Server: server, Trusted: server != ""},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "ran " + name}, nil
		},
	}
}

// TestDelegateNeverMore: whatever a sub-agent's model writes, only tools run that its task names and its caller has: no
// other spelling of a name, no tool of a server, none that a search finds, none that the turn adds, no delegation.
func TestDelegateNeverMore(t *testing.T) {
	t.Parallel()
	all := []string{"echo", "count", "block", "delegate", "find", "srv:echo", "srv:delegate", "srv:wipe", "added"}
	odd := []string{"Echo", " echo", "echo ", "echo\u200b", "srv__echo", "srv.wipe", "srv_wipe", "wipe", "ECHO", "delegate ", "Delegate", "tools.count", "function:count", "", "ec\u202eho"}
	rapid.Check(t, func(rt *rapid.T) {
		given := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"echo", "find", "srv:echo", "added"}), 1, 4, rapid.ID[string]).Draw(rt, "given")
		lacks := rapid.SampledFrom([]string{"", "echo", "srv:echo"}).Draw(rt, "the turn lacks")
		given = slices.DeleteFunc(given, func(name string) bool { return name == lacks })
		if len(given) == 0 {
			given = []string{"find"}
		}
		tries := rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(all), odd...)), 1, 8).Draw(rt, "tries")
		work := llmtest.Step{}
		for _, name := range tries {
			args := `{}`
			switch strings.TrimSpace(name) {
			case "delegate":
				args = `{"task":"deeper"}`
			case "echo":
				args = `{"text":"e"}`
			}
			work.Uses = append(work.Uses, llm.ToolUse{Name: name, Args: []byte(args)})
		}
		task := fmt.Sprintf(`{"task":"work","budget":{"tool_calls":100},"tools":["%s"]}`, strings.Join(given, `","`))
		m := llmtest.New().On("go", llmtest.Step{Uses: uses(1, "delegate", task)}, llmtest.Step{Text: "Done"}).
			On("work", llmtest.Step{Uses: uses(1, "find", `{}`)}, work, llmtest.Step{Text: "worked"})
		find := plain("find", "", true)
		find.Run = func(context.Context, *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "found all", Found: all}, nil
		}
		w := newOffice(t, m, "go", find, plain("srv:echo", "srv", true), plain("srv:delegate", "srv", true), plain("srv:wipe", "srv", false))
		overlay, err := tools.NewOverlay(func(name string) bool { return name == lacks && lacks != "" }, plain("added", "", true))
		if err != nil {
			rt.Fatal(err)
		}
		w.turn.Tools = overlay
		if out := w.finish(t.Context()); out.Text != "Done" {
			rt.Fatalf("outcome %+v: %s", out, w.kinds())
		}
		kid := w.children()[0]
		for _, c := range w.hand.calls {
			if c.Origin.Parent == kid && c.Trail.Started && (!slices.Contains(given, c.Tool) || c.Delegate != nil) {
				rt.Errorf("%q ran; the sub-agent has %q", c.Tool, given)
			}
		}
		for _, r := range m.Requests() {
			for _, tool := range r.Tools {
				if r.Messages[0].Text == "work" && !slices.Contains(given, tool.Name) {
					rt.Errorf("the sub-agent was shown %q; it has %q", tool.Name, given)
				}
			}
		}
		for _, e := range w.shelf.all() {
			if e.Kind == journal.UserEntry && e.Text == "deeper" {
				rt.Error("a sub-agent has a sub-agent")
			}
		}
	})
}

// TestDelegateSecrets: what a sub-agent returns passes the same stages as any result: credentials are hidden, and the
// text is marked as material from outside.
func TestDelegateSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
	m := llmtest.New().On("go", llmtest.Step{Uses: uses(1, "delegate", `{"task":"find the key","name":"scout","tools":["echo"]}`)}, llmtest.Step{Text: "Done"}).
		On("find the key", llmtest.Step{Text: "The key is " + secret + "."})
	w := newOffice(t, m, "go")
	list, err := tools.NewRegistry(toolstest.Echo())
	if err != nil {
		t.Fatal(err)
	}
	tool, err := delegate.New(list)
	if err == nil {
		err = list.Add(tool)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.hand = &hand{chain: chain.New(chain.Options{
		Registry: list, Gate: chain.GateOptions{Policy: toolstest.Decide(func(policy.Request) policy.Decision {
			return policy.Decision{Effect: policy.Allow}
		})}, Approvals: w.lookup, Redact: chain.NewRedact(secrets.New([]string{secret})), Now: func() time.Time { return noon },
	})}
	w.deps.Tools, w.deps.Catalog = w.hand, registered{list}
	w.finish(t.Context())
	r := w.results()[w.children()[0]]
	if strings.Contains(r.Text, secret) || !strings.Contains(r.Text, "The key is ") || r.Source != "sub-agent:scout" || !r.Brought {
		t.Errorf("result %+v", r)
	}
	requests := m.Requests()
	for _, msg := range requests[len(requests)-1].Messages {
		if strings.Contains(msg.Text, secret) {
			t.Errorf("the model reads %q", msg.Text)
		}
	}
}

// ledger is a Budget with a limit: what was settled, and what is reserved.
type ledger struct {
	mu      sync.Mutex
	limit   int // tokens; 0 = none
	used    int
	open    map[string]bool
	settled map[string]int // by key: how often something was paid
}

func (l *ledger) Reserve(_ context.Context, _ *agent.Turn, key string, estimate llm.Usage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit > 0 && l.used >= l.limit {
		return &agent.Denied{Text: "used up"}
	}
	if l.open == nil {
		l.open, l.settled = map[string]bool{}, map[string]int{}
	}
	l.open[key] = true
	return nil
}

func (l *ledger) Settle(_ context.Context, _ *agent.Turn, key string, used llm.Usage, _ float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used += used.Total()
	delete(l.open, key)
	if used.Total() > 0 {
		l.settled[key]++
	}
	return nil
}

func (l *ledger) Payer(*agent.Turn) cost.Payer { return cost.Unlimited{} }

// priced returns steps of a sub-agent that each cost 100 tokens.
func priced(n int) (steps []llmtest.Step) {
	for i := range n {
		steps = append(steps, llmtest.Step{
			Usage: llm.Usage{Input: 90, Output: 10}, Uses: []llm.ToolUse{{Name: "echo", Args: fmt.Appendf(nil, `{"text":"%d"}`, i)}},
		})
	}
	return steps
}

// TestDelegateQuota: a quota that is used up while a sub-agent works ends it, and then the turn, with a clear reason.
// Each call of its model was reserved under a name of its own and paid once, and nothing stays reserved.
func TestDelegateQuota(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 250} {
		m := llmtest.New().On("go", llmtest.Step{Uses: uses(2, "delegate", `{"task":"work","tools":["echo"]}`)}, llmtest.Step{Text: "Done"}).
			On("work", append(priced(2), llmtest.Step{Text: "worked", Usage: llm.Usage{Input: 90, Output: 10}})...)
		w, l := newOffice(t, m, "go"), &ledger{limit: limit}
		w.limits.Parallel, w.deps.Budget = 1, l
		out := w.finish(t.Context())
		if len(l.open) != 0 || l.used != out.Stats.Usage.Total() {
			t.Errorf("limit %d: %v reserved, %d paid, %d on the receipt", limit, l.open, l.used, out.Stats.Usage.Total())
		}
		for key, n := range l.settled {
			if n != 1 {
				t.Errorf("limit %d: %s was paid %d times", limit, key, n)
			}
		}
		results := w.of("")
		switch {
		case limit == 0 && (out.Text != "Done" || len(l.settled) != 6):
			t.Errorf("outcome %+v, paid %v", out, l.settled)
		case limit > 0 && (out.Reason != journal.ReasonBudget || l.used != 300 || !strings.Contains(results[1], "ended without a result: a quota of the person is used up")):
			t.Errorf("outcome %+v, %d paid, results %q", out, l.used, results)
		}
	}
}

// TestDelegateCost: a sub-agent that has cost what its task may cost gives what it has.
func TestDelegateCost(t *testing.T) {
	t.Parallel()
	m := llmtest.New().On("go", llmtest.Step{Uses: uses(1, "delegate", `{"task":"work","tools":["echo"],"budget":{"usd":0.25}}`)}, llmtest.Step{Text: "Done"}).
		On("work", priced(5)...).On("used up: 0.25 USD", llmtest.Step{Text: "as far as three"})
	inner := chatFunc(func(ctx context.Context, req *llm.Request, on func(string)) (*llm.Response, error) {
		resp, err := m.Chat(ctx, req, on)
		if err == nil && req.Messages[0].Text == "work" {
			resp.USD = 0.1
		}
		return resp, err
	})
	w := newOffice(t, inner, "go")
	if out := w.finish(t.Context()); out.Text != "Done" || len(w.of(w.children()[0])) != 3 || !strings.Contains(w.of("")[0], "as far as three") {
		t.Errorf("outcome %+v, results %q", out, w.of(""))
	}
}
