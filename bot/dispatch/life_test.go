package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

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
			wg.Go(func() {
				if err := p.Accept(t.Context(), []turn.Raw{raw(t, w.private(name, "are you there?"))}); err != nil {
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
