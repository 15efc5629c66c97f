package quotatest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
)

// Suite runs each check on an empty counter of its own, made by open.
func Suite(t *testing.T, open func(t *testing.T) quota.Counter) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, *bench){
		"all or nothing": allOrNothing,
		"idempotent":     idempotent,
		"return":         returned,
		"restore":        restored,
		"read":           read,
		"expiry":         expiry,
		"many at once":   atOnce,
		"cancelled":      cancelled,
		"reserve":        reserved,
		"settle":         settled,
		"budget":         budget,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, &bench{Counter: open(t), expire: time.Now().Add(72 * time.Hour)})
		})
	}
}

type bench struct {
	quota.Counter
	expire time.Time
}

func (b *bench) take(t *testing.T, id string, takes ...quota.Take) ([]int64, int) {
	t.Helper()
	counts, denied, err := b.Take(t.Context(), id, takes, b.expire)
	if err != nil {
		t.Fatal(err)
	}
	return counts, denied
}

func (b *bench) want(t *testing.T, keys []string, want ...int64) {
	t.Helper()
	got, err := b.Read(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("counters %v are %v, want %v", keys, got, want)
	}
}

func equal(t *testing.T, what string, counts []int64, denied int, wantDenied int, want ...int64) {
	t.Helper()
	if !slices.Equal(counts, want) || denied != wantDenied {
		t.Errorf("%s: counts %v, denied %d; want %v, %d", what, counts, denied, want, wantDenied)
	}
}

var abc = []string{"a", "b", "c"}

func allOrNothing(t *testing.T, b *bench) {
	takes := []quota.Take{{Key: "a", N: 1, Limit: 3}, {Key: "b", N: 2, Limit: 4}, {Key: "c", N: 1}}
	counts, denied := b.take(t, "1", takes...)
	equal(t, "first", counts, denied, -1, 1, 2, 1)
	counts, denied = b.take(t, "2", takes...)
	equal(t, "exactly at the limit", counts, denied, -1, 2, 4, 2)
	counts, denied = b.take(t, "3", takes...)
	equal(t, "over the second limit", counts, denied, 1, 2, 4, 2)
	b.want(t, abc, 2, 4, 2)
	takes[1].Limit = 0
	b.take(t, "4", takes...)
	takes[1].Limit = 1
	counts, denied = b.take(t, "5", takes...)
	equal(t, "over two limits", counts, denied, 0, 3, 6, 3)
	counts, denied = b.take(t, "6", quota.Take{Key: "d", N: 5, Limit: 4})
	equal(t, "more than there is", counts, denied, 0, 0)
	b.want(t, []string{"d"}, 0)
}

func idempotent(t *testing.T, b *bench) {
	take := quota.Take{Key: "a", N: 1, Limit: 2}
	b.take(t, "1", take)
	counts, denied := b.take(t, "1", take)
	equal(t, "again", counts, denied, -1, 1)
	b.take(t, "2", take)
	counts, denied = b.take(t, "1", take)
	equal(t, "again, at the limit", counts, denied, -1, 2)
	counts, denied = b.take(t, "3", take)
	equal(t, "another", counts, denied, 0, 2)
	counts, denied = b.take(t, "3", take)
	equal(t, "denied again", counts, denied, 0, 2)
}

func returned(t *testing.T, b *bench) {
	takes := []quota.Take{{Key: "a", N: 1, Limit: 1}, {Key: "b", N: 3}}
	back := func(id string) {
		t.Helper()
		if err := b.Return(t.Context(), id, takes); err != nil {
			t.Fatal(err)
		}
	}
	back("unknown")
	b.want(t, abc, 0, 0, 0)
	b.take(t, "1", takes...)
	b.take(t, "denied", takes...)
	back("denied")
	b.want(t, abc, 1, 3, 0)
	back("1")
	b.want(t, abc, 0, 0, 0)
	back("1")
	b.want(t, abc, 0, 0, 0)
	counts, denied := b.take(t, "1", takes...)
	equal(t, "after its return", counts, denied, -1, 1, 3)
	takes[1].N = 10 // more than was taken: a counter never becomes negative
	back("1")
	b.want(t, abc, 0, 0, 0)
}

func restored(t *testing.T, b *bench) {
	for _, step := range []struct{ set, want int64 }{{5, 5}, {3, 5}, {7, 7}, {0, 7}} {
		if err := b.Restore(t.Context(), "a", step.set, b.expire); err != nil {
			t.Fatal(err)
		}
		b.want(t, []string{"a"}, step.want)
	}
	counts, denied := b.take(t, "1", quota.Take{Key: "a", N: 1, Limit: 8})
	equal(t, "after a restore", counts, denied, -1, 8)
	if err := b.Restore(t.Context(), "a", 8, b.expire); err != nil {
		t.Fatal(err)
	}
	counts, denied = b.take(t, "2", quota.Take{Key: "a", N: 1, Limit: 8})
	equal(t, "at the limit", counts, denied, 0, 8)
}

func read(t *testing.T, b *bench) {
	b.want(t, nil)
	b.want(t, []string{"never", "seen"}, 0, 0)
}

func expiry(t *testing.T, b *bench) {
	b.expire = time.Unix(1, 0)
	counts, denied := b.take(t, "1", quota.Take{Key: "a", N: 1, Limit: 1})
	equal(t, "of a day long ago", counts, denied, -1, 1)
	b.want(t, []string{"a"}, 0)
}

// atOnce takes from a shared limit many times at once: exactly as many calls succeed as the limit allows, and nothing
// is charged to the others.
func atOnce(t *testing.T, b *bench) {
	const people, each, shared = 8, 10, 33
	var got atomic.Int64
	var wg sync.WaitGroup
	for p := range people {
		for n := range each {
			wg.Go(func() {
				takes := []quota.Take{{Key: fmt.Sprint("user", p), N: 1, Limit: 6}, {Key: "all", N: 1, Limit: shared}}
				_, denied, err := b.Take(t.Context(), fmt.Sprint(p, "/", n), takes, b.expire)
				if err != nil {
					t.Error(err)
				}
				if denied < 0 {
					got.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if got.Load() != shared {
		t.Errorf("%d got through, want %d", got.Load(), shared)
	}
	keys := []string{"all"}
	for p := range people {
		keys = append(keys, fmt.Sprint("user", p))
	}
	values, err := b.Read(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, v := range values[1:] {
		sum += v
		if v > 6 {
			t.Errorf("a person has %d, more than the limit", v)
		}
	}
	if values[0] != shared || sum != shared {
		t.Errorf("counted %d together and %d by person, want %d", values[0], sum, shared)
	}
}

func cancelled(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, denied, err := b.Take(ctx, "1", []quota.Take{{Key: "a", N: 1}}, b.expire); err == nil || denied != -1 {
		t.Errorf("take: denied %d, %v", denied, err)
	}
	if err := b.Return(ctx, "1", []quota.Take{{Key: "a", N: 1}}); err == nil {
		t.Error("return: no error")
	}
	if _, err := b.Read(ctx, []string{"a"}); err == nil {
		t.Error("read: no error")
	}
	if err := b.Restore(ctx, "a", 1, b.expire); err == nil {
		t.Error("restore: no error")
	}
	b.want(t, []string{"a"}, 0)
}
