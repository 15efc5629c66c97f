package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
)

// TestSettledWhileReserving: a call of a turn is settled while another one of it is being reserved. What it has cost is
// at no moment neither set aside nor charged, so both together stay within the limit.
func TestSettledWhileReserving(t *testing.T) {
	t.Parallel()
	const limit = 100
	for n := range 3000 {
		d := setup(t, aLimit(quota.Tokens, quota.Day, limit))
		p := d.meter.Open(private("42"), "turn")
		of := &agent.Turn{ID: "turn"}
		if err := d.meter.Reserve(t.Context(), of, "turn/1", tokens(limit, 0)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var reserved error
		wg.Go(func() { reserved = d.meter.Reserve(t.Context(), of, "turn/2", tokens(limit, 0)) })
		if err := d.meter.Settle(t.Context(), of, "turn/1", tokens(limit, 0), 0); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if _, denied := errors.AsType[*agent.Denied](reserved); !denied {
			t.Fatalf("run %d: %v although all is spent", n, fmt.Sprint(reserved))
		}
		d.keep(p)
		p.Close()
	}
}

// TestSettledForNothingWhileReserving: what a call set aside and did not cost is enough for the next one, also if that
// is found out while the next one is being reserved.
func TestSettledForNothingWhileReserving(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.Tokens, quota.Day, 100)
	of := &agent.Turn{ID: "turn"}
	var d *desk
	meanwhile := func() {}
	o.Older = func() bool {
		meanwhile()
		return false
	}
	d = setup(t, o)
	p := d.meter.Open(private("42"), "turn")
	defer p.Close()
	if err := d.meter.Reserve(t.Context(), of, "turn/1", tokens(100, 0)); err != nil {
		t.Fatal(err)
	}
	meanwhile = func() {
		if err := d.meter.Settle(t.Context(), of, "turn/1", tokens(0, 0), 0); err != nil {
			t.Error(err)
		}
	}
	if err := d.meter.Reserve(t.Context(), of, "turn/2", tokens(100, 0)); err != nil {
		t.Error(err)
	}
}

// unsure is a store that does not say whether it has stored something.
type unsure struct {
	*bottest.Store
	away atomic.Bool
}

func (u *unsure) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if u.away.Load() {
		return nil, errors.New("the connection was lost")
	}
	return u.Store.Apply(ctx, change)
}

// TestSpentIsStoredLate: what a turn has spent and the store did not take at its end is stored once it does, and nothing
// stays set aside.
func TestSpentIsStoredLate(t *testing.T) {
	t.Parallel()
	store := &unsure{Store: bottest.New()}
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	m := quota.New(aLimit(quota.Tokens, quota.Day, 100), &quotatest.Counter{}, store, texts.Words{}, func() time.Time { return now }, nil)
	of := &agent.Turn{ID: "turn"}
	p := m.Open(private("42"), "turn")
	if err := m.Reserve(t.Context(), of, "turn/1", tokens(100, 0)); err != nil {
		t.Fatal(err)
	}
	if err := m.Settle(t.Context(), of, "turn/1", tokens(30, 0), 0); err != nil {
		t.Fatal(err)
	}
	store.away.Store(true)
	p.Close()
	if p.Flush(t.Context()) == nil || m.StoreLate(t.Context()) == nil {
		t.Error("stored without a store")
	}
	store.away.Store(false)
	if err := m.StoreLate(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := m.Open(private("42"), "next")
	defer next.Close()
	if err := m.Reserve(t.Context(), &agent.Turn{ID: "next"}, "next/1", tokens(71, 0)); err == nil {
		t.Error("what was spent is not charged")
	}
	if err := m.Reserve(t.Context(), &agent.Turn{ID: "next"}, "next/2", tokens(70, 0)); err != nil {
		t.Errorf("what was not spent is still set aside: %v", err)
	}
}
