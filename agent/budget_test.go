package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// purse is an in-memory budget.
type purse struct {
	mu               sync.Mutex
	reserved         map[string]llm.Usage
	settled          map[string]llm.Usage
	usd              float64
	reserve, settles error
}

func (p *purse) Reserve(_ context.Context, _ *agent.Turn, key string, estimate llm.Usage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reserve != nil {
		return p.reserve
	}
	if p.reserved == nil {
		p.reserved, p.settled = map[string]llm.Usage{}, map[string]llm.Usage{}
	}
	p.reserved[key] = estimate
	return nil
}

func (p *purse) Settle(ctx context.Context, _ *agent.Turn, key string, used llm.Usage, usd float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(ctx.Err(), p.settles); err != nil {
		return err
	}
	p.settled[key] = used
	p.usd += usd
	return nil
}

func (*purse) Payer(*agent.Turn) cost.Payer { return cost.Unlimited{} }

func TestBudget(t *testing.T) {
	t.Parallel()
	m := llmtest.New().On("go",
		llmtest.Step{Err: &llm.Error{Kind: llm.Unavailable}},
		llmtest.Step{Uses: []llm.ToolUse{{Name: "echo", Args: []byte(`{"text":"a"}`)}}, Usage: llm.Usage{Input: 10, Output: 1}, USD: 0.5},
		llmtest.Step{Text: "Done", Usage: llm.Usage{Input: 20, Output: 2}, USD: 0.25},
	)
	w := newWorld(t, m, "go")
	money := &purse{}
	w.deps.Budget, w.limits.MaxTokens = money, 99
	if out := w.must(t.Context()); out.Kind != agent.Later {
		t.Fatalf("outcome %+v", out)
	}
	if diff := cmp.Diff(map[string]llm.Usage{"turn-1/1": {}}, money.settled); diff != "" {
		t.Errorf("a call that gave nothing (-want +got):\n%s", diff)
	}
	out := w.must(t.Context())
	want := map[string]llm.Usage{"turn-1/1": {Input: 10, Output: 1}, "turn-1/2": {Input: 20, Output: 2}}
	if diff := cmp.Diff(want, money.settled); diff != "" || money.usd != 0.75 {
		t.Errorf("settled $%v (-want +got):\n%s", money.usd, diff)
	}
	if r := money.reserved["turn-1/2"]; r.Input < 20 || r.Output != 99 {
		t.Errorf("reserved %+v", r)
	}
	if out.Text != "Done" || out.Stats.USD != 0.5 || m.Requests()[1].MaxTokens != 99 {
		t.Errorf("outcome %+v", out)
	}
}

// givenUp is a model that is given up while its request is under way.
type givenUp struct{ cancel func() }

func (givenUp) Name() string { return "m" }

func (g givenUp) Chat(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
	g.cancel()
	return nil, fmt.Errorf("model m: %w: %w", context.Canceled, llm.ErrUnderWay)
}

// TestBudgetOfACallUnderWay: nobody knows what a call has cost that was given up before it said anything: it costs what
// was set aside.
func TestBudgetOfACallUnderWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, llmtest.New(), "go")
	w.deps.Provider = givenUp{cancel}
	money := &purse{}
	w.deps.Budget, w.limits.MaxTokens = money, 99
	if _, err := w.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(money.reserved, money.settled); diff != "" || money.usd != cost.ReservedUSD || len(money.settled) != 1 {
		t.Errorf("settled $%v (-reserved +settled):\n%s", money.usd, diff)
	}
}

// penniless is a model of which an attempt was lost, and another one cannot be paid for.
type penniless struct{ *agent.Denied }

func (penniless) Name() string { return "m" }

func (p penniless) Chat(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
	return nil, fmt.Errorf("pay for an attempt: %w: %w", p.Denied, llm.ErrUnderWay)
}

// TestBudgetOfALostAttempt: a turn ends with the words of the budget if another attempt cannot be paid for, and the one
// that was lost costs what was set aside.
func TestBudgetOfALostAttempt(t *testing.T) {
	t.Parallel()
	denied := &agent.Denied{Scope: "user", Text: "Your tokens are used up."}
	w := newWorld(t, llmtest.New(), "go")
	w.deps.Provider = penniless{denied}
	money := &purse{}
	w.deps.Budget, w.limits.MaxTokens = money, 99
	if out := w.must(t.Context()); out.Kind != agent.Ended || out.Reason != journal.ReasonBudget || out.Text != denied.Text {
		t.Errorf("outcome %+v", out)
	}
	if diff := cmp.Diff(money.reserved, money.settled); diff != "" || money.usd != cost.ReservedUSD || len(money.settled) != 1 {
		t.Errorf("settled $%v (-reserved +settled):\n%s", money.usd, diff)
	}
}

func TestBudgetSaysNo(t *testing.T) {
	t.Parallel()
	denied := &agent.Denied{Scope: "user", Text: "Your tokens are used up."}
	if denied.Error() != "quota of user is used up" {
		t.Errorf("error %q", denied)
	}
	m := llmtest.New(llmtest.Step{Text: "Done"})
	w := newWorld(t, m, "go")
	w.deps.Budget = &purse{reserve: errStore}
	if _, err := w.run(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("err = %v, want %v", err, errStore)
	}
	w.deps.Budget = &purse{reserve: fmt.Errorf("reserve: %w", denied)}
	out := w.must(t.Context())
	if out.Kind != agent.Ended || out.Reason != journal.ReasonBudget || out.Text != denied.Text || len(m.Requests()) != 0 {
		t.Errorf("outcome %+v", out)
	}
}

// TestAnswerSurvivesTheBooks: an answer that is paid for is delivered even if settling it fails.
func TestAnswerSurvivesTheBooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.New(llmtest.Step{Text: "Done"}), "go")
	w.deps.Budget = &purse{settles: errStore}
	if out := w.must(t.Context()); out.Text != "Done" {
		t.Errorf("outcome %+v", out)
	}
}

func TestContextLimit(t *testing.T) {
	t.Parallel()
	m := llmtest.New(llmtest.Step{Text: "Done"})
	w := newWorld(t, m, strings.Repeat("word ", 1000)) // about 1430 tokens
	w.limits.ContextTokens = 1700
	if out := w.must(t.Context()); out.Kind != agent.Ended || out.Reason != journal.ReasonContext || len(m.Requests()) != 0 {
		t.Errorf("over 80 %%: %+v", out)
	}
	for _, enough := range []int{2500, -1, 0} {
		w = newWorld(t, llmtest.New(llmtest.Step{Text: "Done"}), strings.Repeat("word ", 1000))
		w.limits.ContextTokens = enough
		if out := w.must(t.Context()); out.Text != "Done" {
			t.Errorf("window %d: %+v", enough, out)
		}
	}
}

func TestLongHistoryIsDroppedByTurns(t *testing.T) {
	t.Parallel()
	m := script(t, `on "now": call echo {"text":"a"}
then say Done`)
	w := newWorld(t, m, "now")
	w.shelf.entries = nil
	for i := range 20 {
		turn := fmt.Sprintf("old-%d", i)
		w.shelf.keep(
			// 100 tokens
			journal.Entry{Turn: turn, Kind: journal.UserEntry, Text: fmt.Sprintf("question %d ", i) + strings.Repeat("x", 350)},
			journal.Entry{Turn: turn, Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: turn, Name: "echo", Args: []byte(`{}`)}}},
			journal.Entry{Turn: turn, Kind: journal.ResultEntry, Call: turn, Text: strings.Repeat("y", 350)},
			journal.Entry{Turn: turn, Kind: journal.AnswerEntry, Text: "answer"},
		)
	}
	// 400 tokens
	w.shelf.keep(journal.Entry{Turn: "turn-1", Kind: journal.UserEntry, Text: "now " + strings.Repeat("z", 1400)})
	w.limits.ContextTokens = 2000
	if out := w.must(t.Context()); out.Text != "Done" {
		t.Fatalf("outcome %+v", out)
	}
	wellFormed(t, m.Requests())
	for n, r := range m.Requests() {
		first, users := r.Messages[0], 0
		for _, msg := range r.Messages {
			if msg.Role == llm.User {
				users++
			}
		}
		if first.Role != llm.User || !strings.HasPrefix(first.Text, "question ") || users < 2 || users > 5 {
			t.Errorf("request %d begins with %.20q and has %d turns", n, first.Text, users)
		}
	}
	// The current turn is kept even if it alone exceeds the target.
	m = script(t, `on "now": say Done`)
	w.deps.Provider, w.limits.ContextTokens, w.turn.ID = m, 600, "turn-2"
	w.shelf.keep(journal.Entry{Turn: "turn-2", Kind: journal.UserEntry, Text: "now " + strings.Repeat("z", 1050)})
	out := w.must(t.Context())
	if msgs := m.Requests(); out.Text != "Done" || len(msgs) != 1 || len(msgs[0].Messages) != 1 {
		t.Errorf("outcome %+v, requests %d", out, len(msgs))
	}
}
