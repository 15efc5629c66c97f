package agent_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/summary"
)

// till is a Budget that notes what was set aside and what was spent besides the turn's own model.
type till struct {
	mu             sync.Mutex
	open           int
	settled, spent int
}

func (*till) Reserve(context.Context, *agent.Turn, string, llm.Usage) error         { return nil }
func (*till) Settle(context.Context, *agent.Turn, string, llm.Usage, float64) error { return nil }
func (b *till) Payer(*agent.Turn) cost.Payer                                        { return aside{b} }

// aside is its Payer.
type aside struct{ *till }

// Reserve implements pay.Payer.
func (a aside) Reserve(context.Context, string, cost.Amount) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open++
	return nil
}

// Settle implements pay.Payer.
func (a aside) Settle(_ context.Context, _ string, used cost.Amount) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	a.settled++
	if used.Tokens.Total() > 0 {
		a.spent++
	}
	return nil
}

// TestEachSummaryIsPaid: a summary that was written is charged, also if it is lost because the store fails before or after
// it is stored, because the turn is stopped, or because another worker has taken the turn over; each is settled once, and
// the next run pays for the one that it asks for.
func TestEachSummaryIsPaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after error
		stop          bool
		calls         int
	}{
		"stored": {calls: 1}, "lost": {before: errStore, calls: 2}, "stored, not known": {after: errStore, calls: 1},
		"taken over": {before: journal.ErrConflict, calls: 2}, "stopped": {stop: true, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _ := spoken(t, 40)
			ctx, stop := context.WithCancelCause(t.Context())
			calls, till := 0, &till{}
			scribe := chatFunc(func(_ context.Context, _ *llm.Request, onDelta func(string)) (*llm.Response, error) {
				calls++
				onDelta("We called it Heron.")
				if tt.stop && calls == 1 {
					stop(errors.New("the service ends"))
					return nil, context.Canceled
				}
				return &llm.Response{Text: "We called it Heron.", Stop: llm.StopEnd, Usage: llm.Usage{Input: 900, Output: 5}}, nil
			})
			sumUp := summary.Conversation(spend.NewModel("conversation", scribe), time.UTC)
			w.deps.Budget = till
			w.deps.SumUp = func(ctx context.Context, talk agent.Talk) (string, error) { return sumUp(ctx, summary.Talk(talk)) }
			once := func(err error) func(int) error {
				return func(n int) error {
					if n == 1 {
						return err
					}
					return nil
				}
			}
			w.shelf.before, w.shelf.after = once(tt.before), once(tt.after)
			w.turn.ID = "turn-x"
			w.shelf.keep(journal.Entry{Turn: "turn-x", Kind: journal.UserEntry, At: noon, Text: "go"})
			if tt.stop {
				if _, err := w.run(ctx); err == nil {
					t.Fatal("it is not interrupted")
				}
			}
			if out := w.finish(t.Context()); out.Kind != agent.Answered {
				t.Fatalf("%+v", out)
			}
			stored := len(summaries(w.shelf.all()))
			if calls != tt.calls || till.spent != calls || till.settled != calls || till.open != 0 || stored != 1 {
				t.Errorf("%d summaries written, %d stored, %+v", calls, stored, till)
			}
		})
	}
}
