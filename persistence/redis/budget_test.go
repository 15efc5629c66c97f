package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// limits returns Telegram's limits.
func limits() deliver.Limits {
	return deliver.Limits{PerSecond: 30, PerChatPerSecond: 1, PerGroupPerMinute: 20}
}

func chatOf(id string) bot.Place {
	return bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: id, Group: id[0] == '-'}
}

// twins are an in-memory pacer and one whose budget is on a server, with one clock.
type twins struct {
	t      *testing.T
	real   *redistest.Process
	now    time.Time
	memory *deliver.Pacer
	budget *redis.Budget
	limits deliver.Limits
	n      int
	open   []open1
}

// open1 is a request that both have granted.
type open1 struct {
	ask  deliver.Ask
	done func()
	at   time.Time
}

func newTwins(t *testing.T, real *redistest.Process, name string, l deliver.Limits) *twins {
	w := &twins{t: t, real: real, now: time.UnixMilli(1_800_000_000_000), limits: l}
	w.memory = deliver.NewPacer(l, deliver.PacerOptions{Now: func() time.Time { return w.now }, Jitter: func(time.Duration) time.Duration { return 0 }})
	w.budget = redis.BudgetAt(open(t, real.URL()), name, 0)
	return w
}

// try asks both for a request and compares the answers.
func (w *twins) try(step int, place bot.Place, priority bot.Priority) {
	w.t.Helper()
	w.n++
	ask := w.limits.Ask(fmt.Sprint(w.n), place, priority)
	verdict, err := w.budget.Spend(w.t.Context(), ask, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	done, ok := w.memory.Try(w.t.Context(), place, priority)
	if ok != verdict.Granted {
		w.t.Fatalf("step %d at %s, %s priority %d: in memory %v, on the server %+v", step, w.now.Format(time.TimeOnly+".000"), place.Chat, priority, ok, verdict)
	}
	if !ok && verdict.Chat <= 0 && verdict.All <= 0 {
		w.t.Fatalf("step %d: refused without a wait: %+v", step, verdict)
	}
	if ok {
		w.open = append(w.open, open1{ask: ask, done: done, at: w.now})
	}
}

// end ends one of the running requests in both.
func (w *twins) end(i int) {
	w.t.Helper()
	o := w.open[i]
	w.open = append(w.open[:i], w.open[i+1:]...)
	if err := w.budget.End(w.t.Context(), []deliver.Over{{Ask: o.ask}}); err != nil {
		w.t.Fatal(err)
	}
	o.done()
}

// TestSameBudget: a budget on a server grants the same requests as deliver.Pacer, for thousands of random steps.
func TestSameBudget(t *testing.T) {
	t.Parallel()
	real := redistest.Run(t)
	chats := []string{"1", "2", "-1", "-2", "-3"}
	for seed, l := range []deliver.Limits{limits(), {PerSecond: 5}, {PerSecond: 6, PerChatPerSecond: 2, PerGroupPerMinute: 7}, {PerGroupPerMinute: 3}, {PerChatPerSecond: 1}, {}} {
		t.Run(fmt.Sprint("limits ", l), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 3)) //nolint:gosec // the same steps in every run
			name := fmt.Sprint("seed", seed)
			w := newTwins(t, real, name, l)
			client := real.Client()
			for step := range 2500 {
				if err := client.Set(t.Context(), "{send:"+name+"}now", w.now.UnixMilli(), 0).Err(); err != nil {
					t.Fatal(err)
				}
				// Requests that hang for longer are covered by another test.
				for len(w.open) > 0 && w.now.Sub(w.open[0].at) > 9*time.Second {
					w.end(0)
				}
				switch n := r.IntN(100); {
				case n < 50:
					w.try(step, chatOf(chats[r.IntN(len(chats))]), bot.Priority(r.IntN(3)))
				case n < 75:
					if len(w.open) > 0 {
						w.end(r.IntN(len(w.open)))
					}
				case n < 76:
					place, wait := chatOf(chats[r.IntN(len(chats))]), time.Duration(1+r.IntN(4))*time.Second
					w.memory.Freeze(place, wait)
					if err := w.budget.Freeze(t.Context(), place.ChatKey(), wait, 0); err != nil {
						t.Fatal(err)
					}
				case n < 98:
					w.now = w.now.Add(time.Duration(r.IntN(400)) * time.Millisecond)
				default:
					for len(w.open) > 0 {
						w.end(0)
					}
					w.now = w.now.Add(time.Duration(r.IntN(9000)) * time.Millisecond)
				}
			}
		})
	}
}

// TestHangingRequest: a request of a process that has died counts for ten seconds, then its slot is free.
func TestHangingRequest(t *testing.T) {
	t.Parallel()
	real := redistest.Run(t)
	budget := redis.BudgetAt(open(t, real.URL()), "1", 0)
	l := deliver.Limits{PerSecond: 1, PerChatPerSecond: 1, PerGroupPerMinute: 1}
	for i, c := range []struct {
		at   int64
		chat string
		want bool
	}{{0, "-1", true}, {9_000, "1", false}, {10_999, "1", false}, {11_000, "1", true}, {23_000, "-1", false}, {69_999, "-1", false}, {70_000, "-1", true}} {
		real.Do("SET", "{send:1}now", 1_800_000_000_000+c.at)
		v, err := budget.Spend(t.Context(), l.Ask(fmt.Sprint(i), chatOf(c.chat), bot.High), nil)
		if err != nil || v.Granted != c.want {
			t.Errorf("after %d ms in %s: %+v, %v", c.at, c.chat, v, err)
		}
	}
}

// TestBudgetExpires: nothing is left on the server when nobody sends any more.
func TestBudgetExpires(t *testing.T) {
	t.Parallel()
	real := redistest.Run(t)
	s := open(t, real.URL())
	budget, err := s.Budget("1")
	if err != nil {
		t.Fatal(err)
	}
	ask := limits().Ask("a", chatOf("-1"), bot.Low)
	if v, err := budget.Spend(t.Context(), ask, nil); err != nil || !v.Granted {
		t.Fatal(v, err)
	}
	for _, chat := range []string{"-1", "-2", "-3"} {
		if err := budget.Freeze(t.Context(), chat, time.Second, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := budget.End(t.Context(), []deliver.Over{{Ask: ask}}); err != nil {
		t.Fatal(err)
	}
	keys, ok := real.Do("KEYS", "{send:1}*").([]any)
	if !ok || len(keys) < 8 {
		t.Errorf("keys: %v", keys)
	}
	for _, key := range keys {
		if ttl, ok := real.Do("PTTL", key).(int64); !ok || ttl <= 0 || ttl > 90_000 {
			t.Errorf("%v expires in %d ms", key, ttl)
		}
	}
	if _, err := open(t, "").Budget("1"); err == nil {
		t.Error("a budget in the process is shared")
	}
}

// paces spends, ends and stops once.
func paces(t *testing.T, s *redis.Store) {
	t.Helper()
	budget, err := s.Budget("7")
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{"-1", "-1"} {
		ask := limits().Ask(fmt.Sprint(i), chatOf(at), bot.Low)
		v, err := budget.Spend(t.Context(), ask, nil)
		if err != nil || v.Granted != (i == 0) {
			t.Errorf("request %d: %+v, %v", i, v, err)
		}
		if err := budget.End(t.Context(), []deliver.Over{{Ask: ask}}); err != nil {
			t.Error(err)
		}
	}
	for _, chat := range []string{"-1", "2", "3"} {
		if err := budget.Freeze(t.Context(), chat, time.Second, 0); err != nil {
			t.Error(err)
		}
	}
}

// TestWholeSeconds: the server's clock is read in whole milliseconds. A request that ended at the end of one counts for
// a second from there.
func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	real := redistest.Run(t)
	budget := redis.BudgetAt(open(t, real.URL()), "1", 1)
	l := deliver.Limits{PerSecond: 1, PerGroupPerMinute: 1}
	var over []deliver.Over
	for i, c := range []struct {
		at   int64 // the clock says, whatever the time is within this millisecond
		chat string
		want bool
	}{{0, "-1", true}, {1_000, "1", false}, {1_001, "1", true}, {60_000, "-1", false}, {60_001, "-1", true}} {
		real.Do("SET", "{send:1}now", 1_800_000_000_000+c.at)
		ask := l.Ask(fmt.Sprint(i), chatOf(c.chat), bot.High)
		v, err := budget.Spend(t.Context(), ask, over)
		if err != nil || v.Granted != c.want {
			t.Errorf("after %d ms in %s: %+v, %v", c.at, c.chat, v, err)
		}
		if over = nil; v.Granted { // over in the same millisecond
			if err := budget.End(t.Context(), []deliver.Over{{Ask: ask}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTwoPacers: two processes that send as much as they can share one budget while it answers both. On a machine that
// is too busy for that, they try again.
func TestTwoPacers(t *testing.T) {
	t.Parallel()
	for range 3 {
		if twoPacers(t) {
			return
		}
	}
	t.Error("three times the budget did not answer in time: nothing was shown")
}

// twoPacers reports whether the budget always answered.
func twoPacers(t *testing.T) (answered bool) {
	t.Helper()
	real := redistest.Run(t)
	var log strings.Builder // of two pacers, which the writer locks
	out := zerolog.New(zerolog.SyncWriter(&log))
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	var pacers []*deliver.SharedPacer
	for range 2 {
		budget, err := open(t, real.URL()).Budget("1")
		if err != nil {
			t.Fatal(err)
		}
		p := deliver.NewSharedPacer(budget, deliver.Limits{PerSecond: 30, PerChatPerSecond: 2, PerGroupPerMinute: 3}, deliver.SharedOptions{Log: out, Patience: time.Minute})
		work.Go(func() { _ = p.Run(ctx) }) // nil
		pacers = append(pacers, p)
	}
	var mu sync.Mutex
	var all []time.Time
	chats := map[string][]time.Time{}
	const lasting = 2500 * time.Millisecond
	sending, done := context.WithTimeout(ctx, lasting)
	defer done()
	var senders sync.WaitGroup
	for i, p := range pacers {
		for n := range 40 { // forty chats, four groups that both write to
			chat := fmt.Sprint(n + 1)
			if n%10 == 0 {
				chat = "-" + chat
			}
			senders.Go(func() {
				for {
					over, err := p.Wait(sending, chatOf(chat), bot.Priority((n+i)%3))
					if err != nil {
						return
					}
					mu.Lock()
					all, chats[chat] = append(all, time.Now()), append(chats[chat], time.Now())
					mu.Unlock()
					over()
				}
			})
		}
	}
	senders.Wait()
	cancel()
	work.Wait()
	if log.Len() > 0 {
		t.Log(log.String())
		return false
	}
	if n := within(all, time.Second); n > 30 {
		t.Errorf("%d requests of the bot within a second", n)
	}
	if n := len(all); n < 60 { // the first second's 30 and a second one's; the third is not over
		t.Errorf("%d requests in %s", n, lasting)
	}
	for chat, times := range chats {
		most := 6 // three seconds' worth at once
		if chat[0] == '-' {
			most = 3
		}
		if n := within(times, 500*time.Millisecond); n > most {
			t.Errorf("%d requests at once in chat %s", n, chat)
		}
		if n := within(times, time.Minute); chat[0] == '-' && n > 3 {
			t.Errorf("%d requests to the group %s within a minute", n, chat)
		}
	}
	return true
}

// within returns the largest number of times within any window.
func within(times []time.Time, window time.Duration) int {
	best := 0
	for i := range times {
		n := 0
		for _, at := range times[i:] {
			if at.Sub(times[i]) < window {
				n++
			}
		}
		best = max(best, n)
	}
	return best
}
