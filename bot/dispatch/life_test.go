package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// lateStore is a store that is late for a while.
type lateStore struct {
	bot.Store
	late time.Duration
}

func (s *lateStore) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	<-time.After(s.late)
	return s.Store.Apply(ctx, change)
}

// TestSignOfLifeWithoutTheStore: while the store is late, who wrote sees within half a second that their message has
// come, once and not after the answer. A stranger sees nothing before it is known whether they may talk here, and nobody
// does while the store is quick.
func TestSignOfLifeWithoutTheStore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		store := &lateStore{Store: w.store}
		began := time.Now()
		var mu sync.Mutex
		var typed []string
		w.parts = func(p *dispatch.Parts) {
			p.Store = store
			p.Typing = func(_ context.Context, place bot.Place) {
				mu.Lock()
				defer mu.Unlock()
				typed = append(typed, fmt.Sprintf("%s after %s, %d answers", place.Chat, time.Since(began), len(w.texts(bot.Final))))
			}
		}
		seen := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(typed)
		}
		p := w.start()
		people := []string{"ann", "ben"}
		for _, name := range people {
			w.accept(p, w.private(name, "hello"))
		}
		pass(10 * time.Second)
		if got := seen(); len(got) > 0 {
			t.Errorf("shown while nobody waited: %q", got)
		}
		store.late, began = 3*time.Second, time.Now()
		var wg sync.WaitGroup
		for _, name := range append(people, "stranger") {
			asks := []turn.Raw{raw(t, w.private(name, "are you there?"))}
			wg.Go(func() {
				if err := p.Accept(t.Context(), asks); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		pass(time.Minute)
		got := seen()
		slices.Sort(got)
		if want := []string{"ann after 400ms, 2 answers", "ben after 400ms, 2 answers"}; !slices.Equal(got, want) {
			t.Errorf("shown: %q, want %q", got, want)
		}
		store.late = 0
		w.accept(p, w.private("ann", "and now?"))
		pass(time.Minute)
		if got := seen(); len(got) != 2 {
			t.Errorf("shown: %q", got)
		}
	})
}

// lister counts how often the sessions with work are listed.
type lister struct {
	bot.Store
	mu    sync.Mutex
	lists int
}

func (s *lister) Ready(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.SessionKey, error) {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	return s.Store.Ready(ctx, channel, botID, now, limit)
}

func (s *lister) take() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lists
	s.lists = 0
	return n
}

// TestMuchWorkIsListedSeldom: a store that has too much to do is not asked each second for all that waits. Once there is
// little, it is asked as often as before.
func TestMuchWorkIsListedSeldom(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		store := &lister{Store: w.store}
		w.parts = func(p *dispatch.Parts) { p.Store = store }
		w.opts.Concurrency = 1
		open := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if out, err, ok := until(ctx, open, turn); !ok {
				return out, err
			}
			return echo(ctx, turn, log, sink)
		}
		p := w.start()
		var batch []turn.Raw
		for i := range 1200 {
			batch = append(batch, raw(t, w.private(fmt.Sprint("p", i), "hello")))
		}
		if err := p.Accept(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		store.take()
		pass(40 * time.Second)
		if n := store.take(); n < 9 || n > 11 {
			t.Errorf("listed %d times in 40 s, want every fourth", n)
		}
		close(open)
		pass(time.Minute)
		store.take()
		pass(10 * time.Second)
		if n := store.take(); n < 9 || n > 11 {
			t.Errorf("listed %d times in 10 s although nothing waits", n)
		}
	})
}
