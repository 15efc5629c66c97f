package sql_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

func fact(key string) *bot.Change {
	return &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: key, Value: "v"}}}
}

func has(t *testing.T, store *sql.Store, key string) bool {
	t.Helper()
	value, err := store.Fact(t.Context(), "b", key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return value != ""
}

// held is a store whose writer stops before its first commit, so that what comes meanwhile waits in the queue.
type held struct {
	store  *sql.Store
	atDoor chan struct{} // the writer stands before the first commit
	open   chan struct{} // close it to let the writer go on

	mu     sync.Mutex
	groups [][]*bot.Change
}

func hold(t *testing.T) *held {
	t.Helper()
	h := &held{atDoor: make(chan struct{}), open: make(chan struct{})}
	var once sync.Once
	h.store = open(t, sql.Options{Hooks: sql.Hooks{
		BeforeCommit: func([]*bot.Change) {
			once.Do(func() {
				close(h.atDoor)
				<-h.open
			})
		},
		AfterCommit: func(changes []*bot.Change) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.groups = append(h.groups, changes)
		},
	}})
	return h
}

// waitFor waits until so many Changes are in the queue.
func (h *held) waitFor(t *testing.T, n int) {
	t.Helper()
	for h.store.Queued() < n {
		if t.Context().Err() != nil {
			t.Fatal("the test is over")
		}
		runtime.Gosched()
	}
}

func TestAReadSeesEveryChangeAppliedBefore(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				key := fmt.Sprint(w, "/", i)
				if _, err := store.Apply(t.Context(), fact(key)); err != nil {
					t.Error(err)
					return
				}
				value, err := store.Fact(t.Context(), "b", key, time.Now())
				if err != nil || value != "v" {
					t.Errorf("fact %s after its change: %q, %v", key, value, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWaitingChangesShareACommitAndARefusedOneFailsAlone(t *testing.T) {
	t.Parallel()
	h := hold(t)
	var wg sync.WaitGroup
	errs := make([]error, 6)
	apply := func(i int, change *bot.Change) {
		wg.Go(func() { _, errs[i] = h.store.Apply(t.Context(), change) })
	}
	apply(0, fact("first"))
	<-h.atDoor
	for i := 1; i < 5; i++ {
		apply(i, fact(fmt.Sprint(i)))
	}
	refused := fact("refused")
	refused.Decide = []bot.Decision{{ID: "unknown", State: bot.Denied}}
	refused.FactsIf = refused.Facts
	apply(5, refused)
	h.waitFor(t, 5)
	if has(t, h.store, "first") {
		t.Error("a change is seen before its commit")
	}
	close(h.open)
	wg.Wait()
	if !errors.Is(errs[5], bot.ErrNotFound) || errors.Join(errs[:5]...) != nil {
		t.Fatalf("errors %v, want only the last to be refused", errs)
	}
	if has(t, h.store, "refused") || !has(t, h.store, "first") || !has(t, h.store, "4") {
		t.Error("the refused change left something, or another one left nothing")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.groups) != 2 || len(h.groups[0]) != 1 || len(h.groups[1]) != 4 {
		t.Errorf("groups %v, want one of 1 and one of 4 changes", h.groups)
	}
}

func TestApplyHonoursItsContextWhileItWaits(t *testing.T) {
	t.Parallel()
	h := hold(t)
	var wg sync.WaitGroup
	var first, second error
	taken, cancelTaken := context.WithCancel(t.Context())
	waiting, cancelWaiting := context.WithCancel(t.Context())
	wg.Go(func() { _, first = h.store.Apply(taken, fact("taken")) })
	<-h.atDoor
	gone := make(chan struct{})
	wg.Go(func() {
		_, second = h.store.Apply(waiting, fact("waiting"))
		close(gone)
	})
	h.waitFor(t, 1)
	cancelTaken()
	cancelWaiting()
	<-gone
	close(h.open)
	wg.Wait()
	if first != nil || !has(t, h.store, "taken") {
		t.Errorf("a change that the writer has taken: %v", first)
	}
	if !errors.Is(second, context.Canceled) || has(t, h.store, "waiting") {
		t.Errorf("a change that waited: %v", second)
	}
	if _, err := h.store.Apply(waiting, fact("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("apply after its context ended: %v", err)
	}
}

func TestCloseWaitsForChangesAndRefusesLaterOnes(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/zephbot.db"
	store := open(t, sql.Options{Path: path})
	var wg sync.WaitGroup
	stored := make([]bool, 20)
	for i := range stored {
		wg.Go(func() {
			_, err := store.Apply(t.Context(), fact(fmt.Sprint(i)))
			if err != nil && !errors.Is(err, sql.ErrClosed) {
				t.Errorf("apply beside close: %v", err)
			}
			stored[i] = err == nil
		})
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if _, err := store.Apply(t.Context(), fact("late")); !errors.Is(err, sql.ErrClosed) {
		t.Errorf("apply after close: %v", err)
	}
	again := open(t, sql.Options{Path: path})
	for i := range stored {
		if got := has(t, again, fmt.Sprint(i)); got != stored[i] {
			t.Errorf("change %d: stored is %v, its answer said %v", i, got, stored[i])
		}
	}
}

func TestAFullDiskFailsTheWholeGroupInPlainWords(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	if _, err := store.Apply(t.Context(), fact("before")); err != nil {
		t.Fatal(err)
	}
	if err := store.OnWriter(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as small as the file is now
		t.Fatal(err)
	}
	big := fact("big")
	big.Arrive = []bot.Arrival{{Channel: "telegram", Bot: "1", ID: "1", Raw: make([]byte, 1<<20)}}
	_, err := store.Apply(t.Context(), big)
	var unavailable *sql.Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("got %v, want *Unavailable that says the disk is full", err)
	}
	if has(t, store, "big") {
		t.Error("the failed change left something")
	}
	// The writer connects anew, which lifts the limit: as when somebody frees space.
	if _, err := store.Apply(t.Context(), big); err != nil || !has(t, store, "big") {
		t.Errorf("after space was freed: %v", err)
	}
}

func TestAnInvalidChangeNeverReachesTheWriter(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{Hooks: sql.Hooks{BeforeCommit: func(changes []*bot.Change) { t.Errorf("commit of %+v", changes[0]) }}})
	if _, err := store.Apply(t.Context(), &bot.Change{Arrive: []bot.Arrival{{}}}); !errors.Is(err, bot.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}
