package facts_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
)

func lock(store facts.Store, owner string) facts.Lock {
	return facts.Lock{Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Owner: owner, Now: time.Now}
}

// TestLock: one process at a time holds a lock. Who waits gets it when it is given back, or when the store has deleted
// it with its process; a process that could not give it back holds it again.
func TestLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		one, two := lock(store, "one"), lock(store, "two")
		release, err := one.Hold(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		other, err := two.Hold(t.Context(), "y")
		if err != nil {
			t.Fatalf("another key: %v", err)
		}
		other()
		held := make(chan func())
		go func() {
			release, err := two.Hold(t.Context(), "x")
			if err != nil {
				t.Error(err)
			}
			held <- release
		}()
		synctest.Wait()
		select {
		case <-held:
			t.Fatal("two processes hold it")
		default:
		}
		release()
		(<-held)()
		if _, err := one.Hold(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Hold(t.Context(), "x"); err != nil {
			t.Errorf("its own, which was not given back: %v", err)
		}
		if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: bot.LeaderBucket, Key: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := two.Hold(t.Context(), "x"); err != nil {
			t.Errorf("of a process that is gone: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := one.Hold(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited too long: %v", err)
		}
	})
}

// TestLockRefused: a store that does not answer gives no lock; what it refuses to take back for a while is given back
// later.
func TestLockRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &refusing{Store: bottest.New(), left: 1, err: errors.New("disk is busy")}
		l := lock(store, "one")
		if _, err := l.Hold(t.Context(), "x"); err == nil {
			t.Error("held without the store")
		}
		release, err := l.Hold(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		store.left = 3
		release()
		if _, err := lock(store, "two").Hold(t.Context(), "x"); err != nil {
			t.Error(err)
		}
	})
}
