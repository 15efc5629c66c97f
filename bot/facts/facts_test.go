package facts_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
)

// refusing is a store that refuses the next Changes.
type refusing struct {
	*bottest.Store
	left int
	err  error
}

func (r *refusing) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if r.left > 0 {
		r.left--
		return nil, r.err
	}
	return r.Store.Apply(ctx, change)
}

func TestBucket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		b := facts.Bucket{Name: "one", Store: store, Now: time.Now}
		other := facts.Bucket{Name: "two", Store: store, Now: time.Now, For: time.Hour}
		load := func(b facts.Bucket, key, want string) {
			t.Helper()
			if got, err := b.Load(t.Context(), key); got != want || err != nil {
				t.Errorf("%s/%s is %q, %v; want %q", b.Name, key, got, err, want)
			}
		}
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		load(b, "k", "")
		check(b.Save(t.Context(), "k", "1"))
		check(b.Save(t.Context(), "l", "2"))
		check(other.Remember(t.Context(), "s", "c", "3"))
		load(b, "k", "1")
		load(other, "k", "")
		if got, err := other.Recall(t.Context(), "s", "c"); got != "3" || err != nil {
			t.Errorf("recalled %q, %v", got, err)
		}
		list, err := b.List(t.Context(), "")
		if diff := cmp.Diff([]bot.Fact{b.Fact("k", "1"), b.Fact("l", "2")}, list); diff != "" || err != nil {
			t.Errorf("list (-want +got):\n%s%v", diff, err)
		}
		check(b.Save(t.Context(), "k", ""))
		load(b, "k", "")
		for _, fresh := range []string{"first", "second"} {
			if got, err := b.Once(t.Context(), "once", fresh); got != "first" || err != nil {
				t.Errorf("once: %q, %v", got, err)
			}
		}
		<-time.After(2 * time.Hour)
		load(other, "s/c", "")
		load(b, "l", "2")
		if f := other.Fact("x", ""); !f.Expires.IsZero() {
			t.Errorf("a deletion expires: %v", f)
		}
	})
}

// TestKeeper: what the store refuses for a while is kept, what it refuses for good is not tried again, and the end of
// ctx ends the attempts.
func TestKeeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := errors.New("disk is busy")
		store := &refusing{Store: bottest.New(), err: busy, left: 40}
		k := facts.Keeper{Store: store, Log: zerolog.Nop()}
		change := &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}}
		if err := k.Keep(t.Context(), change); err != nil || store.left != 0 {
			t.Errorf("kept with %v, %d refusals left", err, store.left)
		}
		store.left, store.err = 2, fmt.Errorf("no: %w", bot.ErrInvalid)
		if err := k.Keep(t.Context(), change); !errors.Is(err, bot.ErrInvalid) || store.left != 1 {
			t.Errorf("refused for good: %v, %d refusals left", err, store.left)
		}
		store.left, store.err = 1<<30, busy
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := k.Keep(ctx, change); !errors.Is(err, busy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end of ctx: %v", err)
		}
	})
}
