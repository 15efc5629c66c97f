package quota_test

import (
	"context"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// counted counts the Changes that a Meter makes by itself.
type counted struct {
	*bottest.Store
	n int
}

func (c *counted) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	c.n++
	return c.Store.Apply(ctx, change)
}

// walk plays turns as the dispatcher does, on a store that counts the Changes that are made besides.
type walk struct {
	*testing.T
	store *counted
	meter *quota.Meter
	clock time.Time

	id    string
	purse turn.Budget
}

func newWalk(t *testing.T, o quota.Options) *walk {
	t.Helper()
	w := &walk{T: t, store: &counted{Store: bottest.New()}, clock: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	w.meter = quota.New(o, &quotatest.Counter{}, w.store, texts.Words{}, func() time.Time { return w.clock }, nil)
	return w
}

// keep stores what was spent with a Change of the turn.
func (w *walk) keep(spent turn.Spent) {
	w.Helper()
	var change bot.Change
	spent.In(&change)
	applied, err := w.store.Store.Apply(w.Context(), &change)
	w.purse.Stored(&spent, applied)
	if err != nil {
		w.Fatal(err)
	}
}

func (w *walk) begin(id string) {
	w.Helper()
	a, err := w.meter.Admit(w.Context(), private("42"), id)
	if err != nil || a.Refusal != "" {
		w.Fatal(a.Refusal, err)
	}
	w.id, w.purse = id, w.meter.Open(private("42"), id)
	w.keep(w.purse.Begin(a.Ledger, "session", 10))
}

// call makes a call of the turn's model.
func (w *walk) call(step string, input int) {
	w.Helper()
	of := &agent.Turn{ID: w.id}
	if err := w.meter.Reserve(w.Context(), of, w.id+"/"+step, tokens(input, 100)); err != nil {
		w.Fatal(err)
	}
	if err := w.meter.Settle(w.Context(), of, w.id+"/"+step, tokens(input, 20), -1); err != nil {
		w.Fatal(err)
	}
}

// judge makes a call of another model.
func (w *walk) judge(key string) {
	w.Helper()
	if err := w.purse.Reserve(w.Context(), key, cost.Amount{Tokens: tokens(20, 5), USD: cost.UnknownUSD}); err != nil {
		w.Fatal(err)
	}
	if err := w.purse.Settle(w.Context(), key, cost.Amount{Tokens: tokens(20, 1), USD: cost.UnknownUSD}); err != nil {
		w.Fatal(err)
	}
}

func (w *walk) end() {
	w.Helper()
	w.keep(w.purse.Spend(turn.Next{}))
	w.purse.Close()
	if err := w.purse.Flush(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// besides fails unless so many Changes were made besides those of the turn since it was asked last.
func (w *walk) besides(want int, what string) {
	w.Helper()
	if w.store.n != want {
		w.Errorf("%s: %d Changes besides those of the turn, want %d", what, w.store.n, want)
	}
	w.store.n = 0
}

// aside fails unless something, or nothing, is set aside.
func (w *walk) aside(something bool, what string) {
	w.Helper()
	if n := w.store.Aside("user/telegram:42", quota.USD); (n > 0) != something {
		w.Errorf("%s: %d are set aside", what, n)
	}
}

// TestAhead: the Changes of a turn set aside what its next call may cost, so that the call needs none of its own.
func TestAhead(t *testing.T) {
	t.Parallel()
	w := newWalk(t, aLimit(quota.USD, quota.Day, 1e12))
	w.begin("first")
	w.call("1", 1000)
	w.besides(1, "the first call, of which nobody knows how large it is")
	w.keep(w.purse.Spend(turn.Next{Tools: true}))
	w.judge("judge/1")
	w.besides(1, "the first call of a judge")
	w.keep(w.purse.Spend(turn.Next{Call: true, Tokens: 50}))
	w.aside(true, "before the second call")
	w.call("2", 1070)
	w.end()
	w.besides(0, "the second call")
	w.aside(false, "after the turn")

	w.begin("second")
	w.aside(true, "with the beginning")
	w.call("1", 1100)
	w.keep(w.purse.Spend(turn.Next{Tools: true}))
	w.judge("judge/2")
	w.keep(w.purse.Spend(turn.Next{Call: true, Tokens: 50}))
	w.call("2", 1190)
	w.end()
	w.besides(0, "a turn like the one before")
	w.aside(false, "after the second turn")

	w.begin("third")
	w.call("1", 5000)
	w.end()
	w.besides(1, "a call that is larger than expected")
	w.aside(false, "after the third turn")
}

// TestAheadNearTheLimit: what is not there for the next call is not set aside, and refuses nothing.
func TestAheadNearTheLimit(t *testing.T) {
	t.Parallel()
	w := newWalk(t, aLimit(quota.Tokens, quota.Day, 3000))
	w.begin("first")
	w.call("1", 1000)
	w.end()
	w.begin("second")
	w.call("1", 1000)
	w.end()
	w.begin("third") // 2 040 of 3 000 are used, and an eighth more than 1 030 + 100 is too much
	w.call("1", 800)
	w.end()
	if n, err := w.store.Used(t.Context(), "user/telegram:42", quota.Tokens, "2026-03-04"); err != nil || n != 2860 {
		t.Errorf("%d used: %v", n, err)
	}
	if n := w.store.Aside("user/telegram:42", quota.Tokens); n != 0 {
		t.Errorf("%d are set aside", n)
	}
}

// TestIdleIsGivenBack: what no call needs is not kept from others for long.
func TestIdleIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWalk(t, aLimit(quota.USD, quota.Day, 1e12))
	w.begin("first")
	w.call("1", 1000)
	w.end()
	w.begin("second")
	w.aside(true, "with the beginning")
	w.meter.GiveBack(t.Context())
	w.aside(true, "at once")
	w.clock = w.clock.Add(4 * time.Second)
	w.meter.GiveBack(t.Context())
	w.aside(false, "after 4 s")
	w.store.n = 0
	of := &agent.Turn{ID: "second"}
	if err := w.meter.Reserve(t.Context(), of, "second/1", llm.Usage{Input: 1000, Output: 100}); err != nil {
		t.Fatal(err)
	}
	w.besides(1, "a call after that")
	w.clock = w.clock.Add(time.Minute)
	w.meter.GiveBack(t.Context())
	w.aside(true, "while a call runs")
}

// TestNothingAheadForOlder: while a process lives that knows nothing of the ledger, each call is reserved on the
// counters too, so nothing is set aside ahead.
func TestNothingAheadForOlder(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.USD, quota.Day, 1e12)
	o.Older = func() bool { return true }
	w := newWalk(t, o)
	w.begin("first")
	w.call("1", 1000)
	w.end()
	w.begin("second")
	w.aside(false, "with the beginning")
	w.store.n = 0
	w.call("1", 1000)
	w.besides(1, "a call")
}
