package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// aLimit is one limit of a person.
func aLimit(unit string, window texts.Window, n int64) quota.Options {
	return quota.Options{
		Limits: quota.Scopes{User: quota.Limits{{Unit: unit, Window: window}: n}},
		Price:  func(u llm.Usage) float64 { return float64(u.Total()) / 1000 },
	}
}

// spend makes one call of the model in a turn of its own, and stores what it was charged.
func (d *desk) spend(msg *bot.Message, turn string, estimate, used llm.Usage, usd float64) error {
	d.t.Helper()
	p := d.meter.Open(msg, turn)
	defer p.Close()
	of := &agent.Turn{ID: turn}
	if err := d.meter.Reserve(d.t.Context(), of, turn+"/1", estimate); err != nil {
		return err
	}
	if err := d.meter.Settle(d.t.Context(), of, turn+"/1", used, usd); err != nil {
		return err
	}
	d.keep(p)
	return nil
}

// keep stores what a purse has spent, as the dispatcher does, and returns the charges.
func (d *desk) keep(p turn.Budget) []bot.Charge {
	d.t.Helper()
	spent := p.Spend(turn.Next{})
	var change bot.Change
	spent.In(&change)
	applied, err := d.store.Apply(d.t.Context(), &change)
	if err != nil {
		d.t.Fatal(err)
	}
	p.Stored(&spent, applied)
	left := p.Spend(turn.Next{})
	p.Stored(&left, nil)
	if !left.None() {
		d.t.Errorf("stored, and there still: %+v", left)
	}
	return spent.Charges
}

func tokens(in, out int) llm.Usage { return llm.Usage{Input: in, Output: out} }

// TestMoneyOfACallUnderWay: a call of unknown end is charged with exactly what was set aside for it.
func TestMoneyOfACallUnderWay(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{quota.Tokens, quota.USD} {
		d := setup(t, aLimit(unit, quota.Day, 1_000_000))
		p := d.meter.Open(private("42"), "t1")
		of := &agent.Turn{ID: "t1"}
		if err := d.meter.Reserve(t.Context(), of, "t1/1", tokens(30, 10)); err != nil {
			t.Fatal(err)
		}
		held := d.store.Aside("user/telegram:42", unit)
		if err := d.meter.Settle(t.Context(), of, "t1/1", tokens(30, 10), cost.ReservedUSD); err != nil {
			t.Fatal(err)
		}
		charged := map[string]int64{}
		for _, c := range d.keep(p) {
			if strings.HasPrefix(c.Scope, "user/") {
				charged[c.Unit] += c.N
			}
		}
		p.Close()
		if left := d.store.Aside("user/telegram:42", unit); held == 0 || charged[unit] != held || left != 0 {
			t.Errorf("%s: charged %v, held %v, left %v", unit, charged, held, left)
		}
	}
}

// TestMoneyWindows: tokens and USD have limits of a day and of a month; what a refused call asked for is not charged.
func TestMoneyWindows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		unit    string
		window  texts.Window
		limit   int64
		refusal string
		next    time.Duration // until there is room again
	}{
		{quota.Tokens, quota.Day, 100, "Your 100 tokens for today are used up", time.Minute},
		{quota.Tokens, quota.Month, 100, "Your 100 tokens for this month are used up", 28 * 24 * time.Hour},
		{quota.USD, quota.Day, 100_000, "Your $0.10 for today is used up", time.Minute},
		{quota.USD, quota.Month, 100_000, "Your $0.10 for this month is used up", 28 * 24 * time.Hour},
	} {
		o := aLimit(tt.unit, tt.window, tt.limit)
		d := setup(t, o)
		for n, used := range []int{40, 50} { // up to the most that a call may cost
			if err := d.spend(private("42"), fmt.Sprint("t", n), tokens(30, 10), tokens(used-5, 5), float64(used)/1000); err != nil {
				t.Fatalf("%s a %s: %v", tt.unit, tt.window, err)
			}
		}
		err := d.spend(private("42"), "t3", tokens(10, 1), tokens(1, 1), 1)
		denied, ok := errors.AsType[*agent.Denied](err)
		if !ok || !strings.HasPrefix(denied.Text, tt.refusal) || denied.Scope != "user" {
			t.Errorf("%s a %s: %v, want %q", tt.unit, tt.window, err, tt.refusal)
		}
		if err := d.spend(private("42"), "t4", tokens(9, 1), tokens(9, 1), 0.01); err != nil { // exactly what is left
			t.Errorf("%s a %s: the rest: %v", tt.unit, tt.window, err)
		}
		if err := d.spend(private("43"), "t5", tokens(9, 1), tokens(9, 1), 0.01); err != nil {
			t.Errorf("%s a %s: somebody else: %v", tt.unit, tt.window, err)
		}
		d.counter.Lose()
		d.restart(o) // the counters are filled from the charges
		if err := d.spend(private("42"), "t6", tokens(1, 0), tokens(1, 0), 0.001); err == nil {
			t.Errorf("%s a %s: after a restart there is room", tt.unit, tt.window)
		}
		d.clock = d.clock.Add(tt.next)
		if err := d.spend(private("42"), "t7", tokens(90, 10), tokens(90, 10), 0.1); err != nil {
			t.Errorf("%s a %s: in the next one: %v", tt.unit, tt.window, err)
		}
	}
}

// TestCharges: what a call cost is charged at every level that pays, each unit once, on the day of its reservation,
// whether or not there is a limit.
func TestCharges(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Payer: "both"})
	p := d.meter.Open(group("42", ""), "turn")
	defer p.Close()
	of := &agent.Turn{ID: "turn"}
	if err := d.meter.Reserve(t.Context(), of, "turn/1", tokens(10, 10)); err != nil {
		t.Fatal(err)
	}
	d.clock = d.clock.Add(2 * time.Minute) // midnight
	if err := d.meter.Settle(t.Context(), of, "turn/1", tokens(5, 2), 0.0000012); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, c := range d.keep(p) {
		if c.Day != "2026-03-04" || !strings.HasPrefix(c.Key, "turn/1/") || !strings.HasSuffix(c.Key, "/"+c.Unit+"/"+c.Scope) {
			t.Errorf("charge %+v", c)
		}
		got[c.Unit+" "+c.Scope] = c.N
	}
	want := map[string]int64{}
	for _, scope := range []string{"user/telegram:42", "chat/telegram/1/bot/-100", "bot/telegram/1"} {
		want["tokens "+scope], want["microusd "+scope] = 7, 2
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
	if err := d.meter.Settle(t.Context(), of, "turn/2", llm.Usage{}, 0); err != nil {
		t.Error(err)
	}
	if charged := d.keep(p); len(charged) > 0 {
		t.Errorf("a call that gave nothing is charged: %+v", charged)
	}
	if err := d.meter.Settle(t.Context(), &agent.Turn{ID: "other"}, "x", tokens(1, 1), 0); err == nil {
		t.Error("nobody pays for a turn, and it is settled")
	}
}

// TestRefund: what was set aside for a call that failed, or that was stopped before the model answered, is there again
// at once; a call without a known price costs the most that it may.
func TestRefund(t *testing.T) {
	t.Parallel()
	d := setup(t, aLimit(quota.USD, quota.Day, 100_000))
	for n := range 3 {
		if err := d.spend(private("42"), fmt.Sprint("t", n), tokens(90, 10), llm.Usage{}, 0); err != nil {
			t.Errorf("try %d: %v", n, err)
		}
	}
	if err := d.spend(private("42"), "half", tokens(90, 10), tokens(60, 10), agent.UnknownUSD); err != nil {
		t.Fatal(err)
	}
	if got := d.used(private("42")); got != "user 0/0, user 70000/100000" {
		t.Errorf("used %s", got)
	}
}

// TestBudgetOfFifty: of a hundred turns on three processes exactly fifty get what is enough for fifty, of each unit,
// although processes die between a reservation and its settlement, and the counters lose everything all the time.
func TestBudgetOfFifty(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{quota.Turns, quota.Tokens, quota.USD} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				counter := &quotatest.Counter{}
				quotatest.Fifty(t, counter, unit, counter.Lose)
			})
		})
	}
}

// TestPatience: a call that only others' reservations leave no room for waits for them, and gives up in the end or when
// the turn is stopped.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := setup(t, aLimit(quota.Tokens, quota.Day, 100))
		first, second := d.meter.Open(private("42"), "first"), d.meter.Open(private("42"), "second")
		defer first.Close()
		defer second.Close()
		reserve := func(ctx context.Context, turn string) error {
			return d.meter.Reserve(ctx, &agent.Turn{ID: turn}, turn+"/1", tokens(50, 10))
		}
		if err := reserve(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := reserve(t.Context(), "second")
		if denied, ok := errors.AsType[*agent.Denied](err); !ok || !strings.HasPrefix(denied.Text, "What is left of the quota is set aside") {
			t.Errorf("refused with %v", err)
		}
		if waited := time.Since(began); waited < 20*time.Second || waited > 25*time.Second {
			t.Errorf("gave up after %s", waited)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(agent.ErrStopped) })
		if err := reserve(ctx, "second"); !errors.Is(err, agent.ErrStopped) {
			t.Errorf("stopped with %v", err)
		}
		time.AfterFunc(5*time.Second, func() {
			if err := d.meter.Settle(context.WithoutCancel(t.Context()), &agent.Turn{ID: "first"}, "first/1", tokens(10, 10), 0); err != nil {
				t.Error(err)
			}
			d.keep(first)
		})
		began = time.Now()
		if err := reserve(t.Context(), "second"); err != nil || time.Since(began) > 7*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestMoneyAway: without counters the ledger answers.
func TestMoneyAway(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.Tokens, quota.Day, 100)
	o.Patience = time.Nanosecond
	d := setup(t, o)
	d.counter.Fail(errAway)
	if err := d.spend(private("42"), "a", tokens(50, 10), tokens(50, 5), 0); err != nil {
		t.Error(err)
	}
	err := d.spend(private("42"), "b", tokens(50, 10), tokens(50, 5), 0)
	if denied, ok := errors.AsType[*agent.Denied](err); !ok || !strings.HasPrefix(denied.Text, "Your 100 tokens for today are used up") {
		t.Errorf("more than is left: %v", err)
	}
	d.counter.Fail(nil)
	if got := d.used(private("42")); got != "user 0/0, user 55/100" {
		t.Errorf("when they are back: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := d.meter.Open(private("42"), "t")
	defer p.Close()
	if err := d.meter.Reserve(ctx, &agent.Turn{ID: "t"}, "t/1", tokens(1, 1)); err == nil {
		t.Error("reserved for a turn that is over")
	}
}

// TestMoneyNotices: at 75 and at 90 hundredths a person is told, once each.
func TestMoneyNotices(t *testing.T) {
	t.Parallel()
	d := setup(t, aLimit(quota.USD, quota.Month, 1_000_000))
	said := map[string]bool{}
	var got []string
	for n := range 99 {
		turn := fmt.Sprint("t", n)
		p := d.meter.Open(private("42"), turn)
		if err := d.meter.Settle(t.Context(), &agent.Turn{ID: turn}, turn+"/1", tokens(5, 5), 0.01); err != nil {
			t.Fatal(err)
		}
		for _, note := range p.Notices() {
			if !said[note.Key] {
				said[note.Key] = true
				text, _, _ := strings.Cut(note.Text, ";")
				got = append(got, fmt.Sprint(n+1, " ", text))
			}
		}
		p.Close()
	}
	want := []string{"75 You have used $0.75 of $1.00 this month", "90 You have used $0.90 of $1.00 this month"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestZoneOfWindows: days and months begin at midnight of the people's zone, also on the day of 25 hours.
func TestZoneOfWindows(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	o := turnsIn(berlin)
	d := setup(t, o)
	at := func(clock string) {
		t.Helper()
		var err error
		if d.clock, err = time.ParseInLocation("2006-01-02 15:04", clock, berlin); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		clock   string
		refused bool
	}{
		{"2026-10-25 00:00", false},
		{"2026-10-25 23:59", true},
		{"2026-10-26 00:00", false},
		{"2026-10-26 01:30", true},
		{"2026-10-31 23:59", false},
		{"2026-11-01 00:00", false},
	} {
		at(step.clock)
		if refusal, _ := d.admit(private("42"), fmt.Sprint(i)); (refusal != "") != step.refused {
			t.Errorf("%s: %q", step.clock, refusal)
		}
	}
}

func turnsIn(zone *time.Location) quota.Options {
	o := quota.Options{Limits: turns(scopes{User: 1}), Zone: zone}
	o.Limits.User[quota.Of{Unit: quota.Turns, Window: quota.Month}] = 4
	return o
}

// TestSeveralMeters: processes whose clocks are apart by less than the hold do not give the same room twice.
func TestSeveralMeters(t *testing.T) {
	t.Parallel()
	counter, store := &quotatest.Counter{}, bottest.New()
	o := aLimit(quota.Tokens, quota.Day, 100)
	o.Patience = time.Nanosecond
	var mu sync.Mutex
	got := 0
	var wg sync.WaitGroup
	for n := range 3 {
		meter := quota.New(o, counter, store, texts.Words{}, func() time.Time { return time.Date(2026, 3, 4, 12, n, 0, 0, time.UTC) }, nil)
		turn := fmt.Sprint("t", n)
		p := meter.Open(private("42"), turn)
		defer p.Close()
		wg.Go(func() {
			if err := meter.Reserve(t.Context(), &agent.Turn{ID: turn}, turn, tokens(50, 10)); err == nil {
				mu.Lock()
				defer mu.Unlock()
				got++
			}
		})
	}
	wg.Wait()
	if got != 1 {
		t.Errorf("%d got what is enough for one", got)
	}
}

// TestUnpriced: what nobody knows the price of is refused to whoever has a limit of USD, in words for the person or for
// an admin, and to nobody else; what is spent besides the turn's model too. Nothing is set aside for it.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	chat := quota.Limits{{Unit: quota.USD, Window: quota.Month}: 1_000_000}
	for name, tt := range map[string]struct {
		options quota.Options
		model   string // that the conversation has chosen
		caller  string
		want    string // "" = it is answered
	}{
		"a person":          {aLimit(quota.USD, quota.Day, 1_000_000), "", "42", "An admin has to set its price."},
		"an admin":          {aLimit(quota.USD, quota.Month, 1_000_000), "", "9", "input_usd_per_mtok"},
		"another model":     {aLimit(quota.USD, quota.Day, 1_000_000), "spare", "42", ""},
		"a limit of tokens": {aLimit(quota.Tokens, quota.Day, 1_000_000), "", "42", ""},
		"the whole bot":     {quota.Options{Limits: quota.Scopes{Bot: chat}}, "", "42", "An admin has to set its price."},
		"no limit":          {quota.Options{}, "", "42", ""},
	} {
		o := tt.options
		o.Unpriced = func(prefer string) string {
			if prefer == "" {
				return "our-model"
			}
			return ""
		}
		o.Admin = func(_ context.Context, _ bot.Place, caller string) bool { return strings.HasSuffix(caller, "9") }
		d := setup(t, o)
		p := d.meter.Open(private(tt.caller), "t")
		err := d.meter.Reserve(t.Context(), &agent.Turn{ID: "t", Model: tt.model}, "t/1", tokens(10, 10))
		denied, ok := errors.AsType[*agent.Denied](err)
		if ok != (tt.want != "") || ok && (!strings.Contains(denied.Text, tt.want) || !strings.Contains(denied.Text, "our-model")) {
			t.Errorf("%s: %v", name, err)
		}
		payer := d.meter.PayerOf("t")
		limited := tt.want != "" || tt.model != ""
		err = payer.Reserve(t.Context(), "embed/1", cost.Amount{Unpriced: "our-vectors"})
		if cost.Refused(err) != limited || cost.LimitsUSD(cost.WithPayer(t.Context(), payer)) != limited {
			t.Errorf("%s: embeddings: %v, limited %v", name, err, limited)
		}
		p.Close()
	}
}
