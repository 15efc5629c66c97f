package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// exact makes a pacer whose freezes last as long as told.
func exact(limits deliver.Limits) *deliver.Pacer {
	return deliver.NewPacer(limits, deliver.PacerOptions{Jitter: func(time.Duration) time.Duration { return 0 }})
}

// try makes a request that takes no time, if the budget has room for it.
func try(t *testing.T, p *deliver.Pacer, at bot.Place, priority bot.Priority) bool {
	done, ok := p.Try(t.Context(), at, priority)
	if ok {
		done()
	}
	return ok
}

// grants waits n times and says after how many seconds each may go.
func grants(t *testing.T, p *deliver.Pacer, at bot.Place, priority bot.Priority, n int) []float64 {
	t.Helper()
	began := time.Now()
	out := make([]float64, n)
	for i := range out {
		done, err := p.Wait(t.Context(), at, priority)
		if err != nil {
			t.Fatal(err)
		}
		done()
		out[i] = time.Since(began).Round(time.Millisecond).Seconds()
	}
	return out
}

func TestPacerChat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerSecond: 30, PerChatPerSecond: 1, PerGroupPerMinute: 20})
		if diff := cmp.Diff([]float64{0, 0, 0, 1, 2}, grants(t, p, place("7"), bot.High, 5)); diff != "" {
			t.Errorf("private chat: %s", diff)
		}
		if diff := cmp.Diff([]float64{0, 1, 2}, grants(t, p, place("-7"), bot.High, 3)); diff != "" {
			t.Errorf("group: %s", diff)
		}
		// What is modest leaves one for an answer.
		if diff := cmp.Diff([]float64{0, 0, 1}, grants(t, p, place("8"), bot.Low, 3)); diff != "" {
			t.Errorf("modest in a private chat: %s", diff)
		}
		if !try(t, p, place("8"), bot.High) {
			t.Error("nothing was left for an answer")
		}
	})
}

// TestBehaviour05LongAnswerInAGroup: five minutes of edits in a group stay within 20 requests a minute, and leave room
// for what matters more.
func TestBehaviour05LongAnswerInAGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerChatPerSecond: 1, PerGroupPerMinute: 20})
		group := place("-7")
		began := time.Now()
		var all, low []time.Time
		for time.Since(began) < 5*time.Minute {
			if try(t, p, group, bot.Low) {
				low, all = append(low, time.Now()), append(all, time.Now())
			}
			if time.Since(began) > 2*time.Minute && try(t, p, group, bot.High) {
				all = append(all, time.Now())
			}
			pass(500 * time.Millisecond)
		}
		if n := most(all, time.Minute); n != 20 {
			t.Errorf("%d requests within a minute, want 20", n)
		}
		if n := most(low, time.Minute); n != 12 {
			t.Errorf("%d modest requests within a minute, want 12", n)
		}
	})
}

// most is the largest number of times within any window.
func most(times []time.Time, window time.Duration) int {
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

func TestPacerBot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerSecond: 10})
		var (
			mu    sync.Mutex
			times []time.Time
			order []bot.Priority
			wg    sync.WaitGroup
		)
		wait := func(priority bot.Priority, chat string) {
			wg.Go(func() {
				done, err := p.Wait(t.Context(), place(chat), priority)
				if err != nil {
					t.Error(err)
					return
				}
				done()
				mu.Lock()
				defer mu.Unlock()
				times, order = append(times, time.Now()), append(order, priority)
			})
			synctest.Wait()
		}
		for i := range 10 {
			wait(bot.High, fmt.Sprint("first", i))
		}
		for i := range 30 {
			wait(bot.Priority(2-i%3), fmt.Sprint(i))
		}
		wg.Wait()
		if n := most(times, time.Second); n != 10 {
			t.Errorf("%d requests within a second, want 10", n)
		}
		for i, priority := range order[10:20] {
			if priority != bot.High {
				t.Errorf("request %d of the next second has priority %d, want the answers first", i, priority)
			}
		}
	})
}

func TestPacerNoLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{})
		if got := grants(t, p, place("-7"), bot.Low, 500)[499]; got != 0 {
			t.Errorf("waited %v s", got)
		}
		p.Freeze(place("-7"), 5*time.Second)
		if diff := cmp.Diff([]float64{5, 5}, grants(t, p, place("-7"), bot.High, 2)); diff != "" {
			t.Errorf("a 429 is obeyed all the same: %s", diff)
		}
	})
}

func TestPacerFreeze(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerSecond: 30, PerChatPerSecond: 1, PerGroupPerMinute: 20})
		p.Freeze(place("1"), 5*time.Second)
		p.Freeze(place("1"), time.Second) // shorter: changes nothing
		if !p.Frozen(place("1")) || p.Frozen(place("2")) || try(t, p, place("1"), bot.High) || !try(t, p, place("2"), bot.Low) {
			t.Error("one frozen chat: it alone must wait")
		}
		pass(3 * time.Second)
		p.Freeze(place("2"), 20*time.Second)
		p.Freeze(place("3"), 30*time.Second)
		if p.Frozen(place("9")) {
			t.Error("two chats frozen together froze the bot")
		}
		p.Freeze(place("4"), 40*time.Second)
		if diff := cmp.Diff([]float64{22}, grants(t, p, place("9"), bot.High, 1)); diff != "" {
			t.Errorf("three chats frozen together: %s", diff)
		}
		if diff := cmp.Diff([]float64{18}, grants(t, p, place("4"), bot.High, 1)); diff != "" {
			t.Errorf("the longest freeze: %s", diff)
		}
	})
}

// TestPacerEndsAFlood: many chats are refused because the bot sends too fast, and each request within the wait makes it
// a second longer. All of them arrive in the end: the bot does not keep the server angry by asking too early, one chat
// after the other.
func TestPacerEndsAFlood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerSecond: 30, PerChatPerSecond: 1})
		began := time.Now()
		var server struct {
			sync.Mutex
			frozen  time.Time
			refused int
		}
		server.frozen = began.Add(10 * time.Second)
		ask := func() (wait time.Duration) {
			server.Lock()
			defer server.Unlock()
			if now := time.Now(); now.Before(server.frozen) {
				server.frozen = server.frozen.Add(time.Second)
				server.refused++
				return server.frozen.Sub(now).Truncate(time.Second) + time.Second
			}
			return 0
		}
		var chats sync.WaitGroup
		for i := range 40 {
			chats.Go(func() {
				at := place(fmt.Sprint(i))
				for time.Since(began) < 10*time.Minute {
					over, err := p.Wait(t.Context(), at, bot.High)
					if err != nil {
						t.Error(err)
						return
					}
					wait := ask()
					<-time.After(100 * time.Millisecond) // the answer is on its way, and so are requests to other chats
					if wait == 0 {
						over()
						return
					}
					p.Freeze(at, wait)
					over()
					<-time.After(wait) // what is to be sent waits as long as it was told
				}
				t.Errorf("chat %d was refused for ten minutes", i)
			})
		}
		chats.Wait()
		t.Logf("all have arrived after %s; %d requests were refused", time.Since(began).Round(time.Second), server.refused)
	})
}

func TestPacerJitter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := deliver.NewPacer(deliver.Limits{}, deliver.PacerOptions{})
		for range 20 {
			p.Freeze(place("1"), 5*time.Second)
			if got := grants(t, p, place("1"), bot.High, 1)[0]; got < 5 || got > 5.5 {
				t.Errorf("frozen for %v s", got)
			}
		}
	})
}

func TestPacerGivesUpWithContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{})
		p.Freeze(place("1"), time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Wait(ctx, place("1"), bot.High); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v", err)
		}
		if _, err := p.Wait(ctx, place("2"), bot.High); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait with a context that has ended: %v", err)
		}
	})
}

func TestPacerForgetsChats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerSecond: 1000, PerChatPerSecond: 1, PerGroupPerMinute: 20})
		for i := range 900 {
			try(t, p, place(fmt.Sprint(-i-1)), bot.High)
		}
		p.Freeze(place("-3"), time.Hour)
		pass(3 * time.Minute)
		try(t, p, place("1"), bot.High)
		if n := p.Chats(); n > 2 {
			t.Errorf("%d chats remembered, want the frozen and the new one", n)
		}
		if try(t, p, place("-3"), bot.High) {
			t.Error("a frozen chat was forgotten")
		}
	})
}
