package facts_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
)

// counted counts how often a whole bucket is read, and answers late when it is told to.
type counted struct {
	*bottest.Store
	reads, revisions int
	late             atomic.Bool
	asked, answer    chan struct{}
}

func (c *counted) Fact(ctx context.Context, bucket, key string, now time.Time) (string, error) {
	c.revisions++
	return c.Store.Fact(ctx, bucket, key, now)
}

func (c *counted) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	c.reads++
	list, err := c.Store.FactsOf(ctx, bucket, prefix, now)
	if c.late.CompareAndSwap(true, false) {
		close(c.asked)
		<-c.answer
	}
	return list, err
}

func followed(store bot.Facts) *facts.Followed[string] {
	return facts.NewFollowed(store, "b", "b_revision", time.Now, func(list []bot.Fact) (text string) {
		for i := range list {
			text += list[i].Key + "=" + list[i].Value + " "
		}
		return text
	})
}

func put(t *testing.T, store bot.Writer, f *facts.Followed[string], key, value string) {
	t.Helper()
	_, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: key, Value: value}, f.Revised()}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFollowed: what any process stores is known after the next Follow, and nothing is read while nothing changes.
func TestFollowed(t *testing.T) {
	t.Parallel()
	store := &counted{Store: bottest.New()}
	here, there := followed(store), followed(store)
	follow := func(want string, reads int) {
		t.Helper()
		if err := here.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := here.Value(); got != want || store.reads != reads || !here.Known() {
			t.Errorf("%q after %d reads, want %q after %d", got, store.reads, want, reads)
		}
	}
	if here.Known() || here.Value() != "" {
		t.Error("known before it was read")
	}
	follow("", 1)
	put(t, store, there, "x", "1")
	follow("x=1 ", 2)
	follow("x=1 ", 2)
	put(t, store, there, "x", "")
	follow("", 3)
	here.Forget()
	follow("", 4)
	follow("", 4)
}

// TestFollowedLate: what was read before a change, or before Forget, is not what counts after it.
func TestFollowedLate(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(f *facts.Followed[string]){
		"another Follow": func(*facts.Followed[string]) {},
		"Forget":         func(f *facts.Followed[string]) { f.Forget() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &counted{Store: bottest.New(), asked: make(chan struct{}), answer: make(chan struct{})}
				f := followed(store)
				put(t, store, f, "x", "old")
				follow := func() {
					if err := f.Follow(t.Context()); err != nil {
						t.Error(err)
					}
				}
				store.late.Store(true)
				go follow()
				<-store.asked
				if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "x", Value: "new"}}}); err != nil {
					t.Fatal(err)
				}
				if name == "another Follow" {
					put(t, store, f, "x", "new")
				}
				later(f)
				go follow()
				synctest.Wait()
				close(store.answer)
				synctest.Wait()
				if got := f.Value(); got != "x=new " {
					t.Errorf("%q is remembered", got)
				}
			})
		})
	}
}

// TestFollowedEnds: whoever waits for another Follow does not wait longer than its context.
func TestFollowedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: bottest.New(), asked: make(chan struct{}), answer: make(chan struct{})}
		f := followed(store)
		store.late.Store(true)
		go func() { _ = f.Follow(t.Context()) }()
		<-store.asked
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Follow(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(store.answer)
	})
}
