package quota_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// stored is what the store holds of a scope, in tokens and millionths of a dollar.
func (d *desk) stored(scope string) [2]int64 {
	d.t.Helper()
	var got [2]int64
	for i, unit := range []string{quota.Tokens, quota.USD} {
		n, err := d.store.Used(d.t.Context(), scope, unit, "2026-03-04")
		if err != nil {
			d.t.Fatal(err)
		}
		got[i] = n
	}
	return got
}

// TestSideCalls: what a turn spends besides the calls of its model is reserved at the same levels, refused like them,
// and stored with the next entry of its journal.
func TestSideCalls(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.USD, quota.Day, 100_000)
	o.Patience = time.Nanosecond
	d := setup(t, o)
	p := d.meter.Open(private("42"), "turn")
	payer := d.meter.Payer(&agent.Turn{ID: "turn"})
	if err := payer.Reserve(t.Context(), "transcribe/1", cost.Amount{USD: 0.06}); err != nil {
		t.Fatal(err)
	}
	err := payer.Reserve(t.Context(), "judge/1", cost.Amount{Tokens: tokens(40, 10), USD: cost.UnknownUSD}) // at most $0.05
	if denied, ok := errors.AsType[*cost.Denied](err); !ok || denied.Text == "" {
		t.Errorf("more than is left: %v", err)
	}
	if err := payer.Settle(t.Context(), "transcribe/1", cost.Amount{USD: 0.01}); err != nil {
		t.Fatal(err)
	}
	if err := payer.Reserve(t.Context(), "judge/2", cost.Amount{Tokens: tokens(40, 10), USD: cost.UnknownUSD}); err != nil {
		t.Errorf("what the recording did not cost is not given back: %v", err)
	}
	if err := payer.Settle(t.Context(), "judge/2", cost.Amount{Tokens: tokens(30, 1), USD: cost.UnknownUSD}); err != nil {
		t.Fatal(err)
	}
	d.keep(p)
	all, err := d.store.Charges(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		if c.Scope == "user/telegram:42" {
			name, _, _ := strings.Cut(c.Key, "/")
			got = append(got, name+" "+c.Unit)
		}
	}
	if diff := cmp.Diff([]string{"judge microusd", "judge tokens", "transcribe microusd"}, got); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
	if held := d.store.Aside("user/telegram:42", quota.USD); held != 0 {
		t.Errorf("%d are set aside for nothing", held)
	}
	p.Close()
	if err := d.meter.PayerOf("turn").Reserve(t.Context(), "x", cost.Amount{}); err == nil {
		t.Error("reserved for a turn that is over")
	}
}

// TestLateSettlement: a call that outlives its turn is stored by itself, once, and is counted after a restart.
func TestLateSettlement(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.Tokens, quota.Day, 100)
	d := setup(t, o)
	p := d.meter.Open(private("42"), "turn")
	if err := p.Reserve(t.Context(), "sample/1", cost.Amount{Tokens: tokens(40, 10), USD: cost.UnknownUSD}); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if err := p.Settle(t.Context(), "sample/1", cost.Amount{Tokens: tokens(40, 5), USD: 0.5}); err != nil {
		t.Fatal(err)
	}
	left := p.Spend(turn.Next{})
	p.Stored(&left, nil)
	if !left.None() {
		t.Errorf("somebody is to store it again: %+v", left)
	}
	if got := d.stored("user/telegram:42"); got != [2]int64{45, 500_000} {
		t.Errorf("stored %v", got)
	}
	d.counter.Lose()
	d.restart(o)
	if got := d.used(private("42")); got != "user 0/0, user 45/100, user 500000/0" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestAside: what was spent for a turn besides its answers is stored for the receipt, as a sum of each run, also what is
// settled when the turn is over.
func TestAside(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.Tokens, quota.Day, 1000)
	d := setup(t, o)
	sum := func() turn.Aside {
		facts, err := d.store.FactsOf(t.Context(), turn.AsideBucket, "turn/", d.clock)
		if err != nil {
			t.Fatal(err)
		}
		return turn.SumAside(facts)
	}
	facts := func(p turn.Budget) []bot.Fact {
		spent := p.Spend(turn.Next{})
		p.Stored(&spent, nil)
		return spent.Facts
	}
	for range 2 { // in two runs
		p := d.meter.Open(private("42"), "turn")
		of := &agent.Turn{ID: "turn"}
		if err := d.meter.Settle(t.Context(), of, "turn/1", tokens(7, 7), 0.5); err != nil {
			t.Fatal(err)
		}
		if facts := facts(p); facts != nil {
			t.Errorf("an answer is in the journal: %+v", facts)
		}
		for _, used := range []cost.Amount{{Tokens: tokens(40, 5), USD: 0.25}, {}, {USD: 0.25}} {
			if err := p.Settle(t.Context(), "judge/1", used); err != nil {
				t.Fatal(err)
			}
			d.keep(p)
		}
		if facts := facts(p); facts != nil {
			t.Errorf("stored already: %+v", facts)
		}
		p.Close()
		if err := p.Settle(t.Context(), "sample/1", cost.Amount{Tokens: tokens(1, 1), USD: 0.5}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := sum(), (turn.Aside{Calls: 6, Input: 82, Output: 12, USD: 2}); got != want {
		t.Errorf("stored %+v, want %+v", got, want)
	}
}

// TestTwoBeginTheSameTurn: a process that did not get a turn gives back its own reservation, and not that of the one that
// did, which would let another call through.
func TestTwoBeginTheSameTurn(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.Tokens, quota.Day, 100)
	o.Patience = time.Nanosecond
	d := setup(t, o)
	other := quota.New(o, d.counter, d.store, texts.Words{}, func() time.Time { return d.clock }, nil)
	turn := &agent.Turn{ID: "turn"}
	defer d.meter.Open(private("42"), "turn").Close()
	loser := other.Open(private("42"), "turn")
	defer loser.Close()
	if err := errors.Join(d.meter.Reserve(t.Context(), turn, "turn/1", tokens(40, 10)), other.Reserve(t.Context(), turn, "turn/1", tokens(40, 10))); err != nil {
		t.Fatal(err)
	}
	if err := other.Settle(t.Context(), turn, "turn/1", tokens(0, 0), 0); err != nil {
		t.Fatal(err)
	}
	d.keep(loser)
	defer other.Open(private("42"), "next").Close()
	next := &agent.Turn{ID: "next"}
	if err := other.Reserve(t.Context(), next, "next/1", tokens(41, 10)); err == nil {
		t.Error("what is set aside for the turn was given away")
	}
	if err := other.Reserve(t.Context(), next, "next/1", tokens(40, 10)); err != nil {
		t.Errorf("what is left: %v", err)
	}
}

// TestHouse: what the service does for itself is charged to the bot alone, stored at once, and refused when the bot's
// budget is used up.
func TestHouse(t *testing.T) {
	t.Parallel()
	o := quota.Options{Limits: quota.Scopes{
		User: quota.Limits{{Unit: quota.USD, Window: quota.Day}: 1}, Bot: quota.Limits{{Unit: quota.USD, Window: quota.Month}: 1_000_000},
	}}
	d := setup(t, o)
	place := private("42").Place
	house := d.meter.House(place.Channel, place.Bot)
	for n, refused := range []bool{false, false, true} {
		key := string(rune('a' + n))
		err := house.Reserve(t.Context(), key, cost.Amount{USD: 0.5})
		if _, denied := errors.AsType[*cost.Denied](err); denied != refused {
			t.Errorf("call %d: %v", n, err)
		}
		if refused {
			continue
		}
		if err := house.Settle(t.Context(), key, cost.Amount{USD: 0.5}); err != nil {
			t.Error(err)
		}
	}
	if got := d.stored("bot/" + place.Channel + "/" + place.Bot); got != [2]int64{0, 1_000_000} {
		t.Errorf("stored %v", got)
	}
	if got := d.stored("user/"); got != [2]int64{} {
		t.Errorf("charged to a person: %v", got)
	}
}
