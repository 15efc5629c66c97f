package deliver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// common is a budget that processes share, kept by a Pacer, which can be away.
type common struct {
	pacer *deliver.Pacer

	mu    sync.Mutex
	away  bool
	open  map[string]func()
	asked int
	froze []string
}

func newCommon(t *testing.T, l deliver.Limits) *common {
	t.Helper()
	c := &common{pacer: exact(l), open: map[string]func(){}}
	t.Cleanup(func() { // after the pacers have ended
		if _, open := c.state(); open > 0 && !c.away {
			t.Errorf("%d requests were never said to be over", open)
		}
	})
	return c
}

var errAway = errors.New("the server is away")

// Spend implements deliver.Budget.
func (c *common) Spend(ctx context.Context, ask deliver.Ask, over []deliver.Over) (deliver.Verdict, error) {
	if err := c.End(ctx, over); err != nil {
		return deliver.Verdict{}, err
	}
	priority := bot.High
	if ask.Low {
		priority = bot.Low
	}
	at := place(ask.Chat[len("telegram/1/bot/"):])
	if at.ChatKey() != ask.Chat {
		return deliver.Verdict{}, errors.New("unknown chat " + ask.Chat)
	}
	done, ok := c.pacer.Try(ctx, at, priority)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if !ok {
		v := deliver.Verdict{Chat: 50 * time.Millisecond}
		if c.pacer.Frozen(at) {
			v.Frozen = v.Chat
		}
		return v, nil
	}
	c.open[ask.ID] = done
	return deliver.Verdict{Granted: true}, nil
}

// End implements deliver.Budget.
func (c *common) End(_ context.Context, over []deliver.Over) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errAway
	}
	for _, o := range over {
		if done := c.open[o.Ask.ID]; done != nil {
			done()
			delete(c.open, o.Ask.ID)
		}
	}
	return nil
}

// Freeze implements deliver.Budget.
func (c *common) Freeze(_ context.Context, chat string, wait, more time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errAway
	}
	c.froze = append(c.froze, chat)
	c.pacer.Freeze(place(chat[len("telegram/1/bot/"):]), wait+more)
	return nil
}

func (c *common) set(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func (c *common) state() (asked, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, len(c.open)
}

// shares runs a pacer over a common budget until the test ends.
func shares(t *testing.T, c *common, l deliver.Limits, living int) *deliver.SharedPacer {
	t.Helper()
	p := deliver.NewSharedPacer(c, l, deliver.SharedOptions{
		PacerOptions: deliver.PacerOptions{Jitter: func(time.Duration) time.Duration { return 0 }}, Living: func() int { return living }, Log: zerolog.Nop(),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestSharedTogether: two processes keep one budget together, each asks once for a request that has room, and what is
// over is told soon.
func TestSharedTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := deliver.Limits{PerSecond: 10, PerChatPerSecond: 1}
		c := newCommon(t, l)
		a, b := shares(t, c, l, 2), shares(t, c, l, 2)
		for i, p := range []*deliver.SharedPacer{a, b} {
			over, err := p.Wait(t.Context(), place("1"), bot.High)
			if err != nil {
				t.Fatal(err)
			}
			if asked, open := c.state(); asked != i+1 || open != 1 {
				t.Errorf("request %d: asked %d times, %d under way", i, asked, open)
			}
			over()
			pass(200 * time.Millisecond)
			if _, open := c.state(); open != 0 {
				t.Errorf("request %d is over and %d are under way", i, open)
			}
		}
		var mu sync.Mutex
		var times []time.Time
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var senders sync.WaitGroup
		for i := range 30 {
			senders.Go(func() {
				for {
					over, err := []*deliver.SharedPacer{a, b}[i%2].Wait(ctx, place(string(rune('a'+i))), bot.Middle)
					if err != nil {
						return
					}
					mu.Lock()
					times = append(times, time.Now())
					mu.Unlock()
					over()
				}
			})
		}
		senders.Wait()
		if n := most(times, time.Second); n != 10 {
			t.Errorf("%d requests within a second, want 10", n)
		}
		if n := len(times); n < 80 { // of 100: what is over is told up to 0.1 s later
			t.Errorf("%d requests in 10 s", n)
		}
	})
}

// TestSharedOrder: when there is room for one, what is more important goes first.
func TestSharedOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := deliver.Limits{PerSecond: 1}
		c := newCommon(t, l)
		p := shares(t, c, l, 2)
		over, err := p.Wait(t.Context(), place("1"), bot.High)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var senders sync.WaitGroup
		for i, name := range []string{"low", "middle", "high"} {
			senders.Go(func() {
				over, err := p.Wait(t.Context(), place(name), bot.Low-bot.Priority(i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				over()
			})
			synctest.Wait()
		}
		if p.Likely(place("high"), bot.Low) {
			t.Error("somebody waits for the chat, and it looks free")
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.Wait(gone, place("gone"), bot.High); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gave up with %v", err)
		}
		over()
		senders.Wait()
		if diff := cmp.Diff([]string{"high", "middle", "low"}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// TestSharedAway: while the budget does not answer, each process goes on with its part, counting what it has sent
// before; then they share again.
func TestSharedAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := deliver.Limits{PerSecond: 30, PerGroupPerMinute: 20}
		c := newCommon(t, l)
		p := shares(t, c, l, 3)
		send := func(at bot.Place, lasting time.Duration) int {
			ctx, cancel := context.WithTimeout(t.Context(), lasting)
			defer cancel()
			for n := 0; ; n++ {
				over, err := p.Wait(ctx, at, bot.High)
				if err != nil {
					return n
				}
				over()
			}
		}
		if n := send(place("-1"), 2*time.Second); n != 20 {
			t.Errorf("%d requests to a group, want 20", n)
		}
		c.set(true)
		if n := send(place("-1"), 2*time.Second); n != 0 {
			t.Errorf("%d requests more to a group within its minute", n)
		}
		if n := send(place("-2"), 30*time.Second); n != 6 {
			t.Errorf("%d requests to a group, want a third of 20", n)
		}
		if n := send(place("1"), 3500*time.Millisecond); n < 35 || n > 40 {
			t.Errorf("%d requests in 3.5 s, want 10 a second", n)
		}
		done, ok := p.Try(t.Context(), place("2"), bot.Low)
		if ok {
			done()
		}
		c.set(false)
		pass(3 * time.Second)
		if n := send(place("1"), 3500*time.Millisecond); n < 80 || n > 120 {
			t.Errorf("%d requests in 3.5 s, want nearly 30 a second", n)
		}
	})
}

// TestSharedFreeze: a 429 stops the chat here at once and in the other process from its next request on.
func TestSharedFreeze(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCommon(t, deliver.Limits{})
		a, b := shares(t, c, deliver.Limits{}, 2), shares(t, c, deliver.Limits{}, 2)
		a.Freeze(place("1"), 5*time.Second)
		if !a.Frozen(place("1")) || a.Frozen(place("2")) || a.Likely(place("1"), bot.High) {
			t.Error("the 429 is not known where it came")
		}
		synctest.Wait()
		if _, ok := b.Try(t.Context(), place("1"), bot.High); ok || !b.Frozen(place("1")) {
			t.Errorf("the other process writes to the chat: %v, %v", ok, b.Frozen(place("1")))
		}
		began := time.Now()
		over, err := b.Wait(t.Context(), place("1"), bot.High)
		if err != nil || time.Since(began) < 5*time.Second || time.Since(began) > 5100*time.Millisecond {
			t.Errorf("went on after %s, %v", time.Since(began), err)
		}
		over()
		if !slices.Equal(c.froze, []string{place("1").ChatKey()}) {
			t.Errorf("told of %q", c.froze)
		}
	})
}

// TestSharedOffer: a row is stored as being sent without asking the budget, which is asked once before the request.
func TestSharedOffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		l := deliver.Limits{PerChatPerSecond: 1}
		c := newCommon(t, l)
		w.pacer = shares(t, c, l, 2)
		w.start()
		w.offered()
		synctest.Wait()
		var states []bot.RowState
		w.store.Hooks.BeforeApply = func(change *bot.Change) error {
			if asked, _ := c.state(); len(change.Send) > 0 && asked > 0 {
				t.Errorf("the budget was asked %d times before the commit", asked)
			}
			for _, r := range change.Send {
				states = append(states, r.State)
			}
			return nil
		}
		w.say(row(bot.Final, "one"))
		synctest.Wait()
		if asked, _ := c.state(); asked != 1 {
			t.Errorf("asked %d times for one answer", asked)
		}
		if diff := cmp.Diff([]bot.RowState{bot.Sending}, states); diff != "" {
			t.Errorf("states stored (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"one"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		w.stop()
	})
}
