package quotatest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
)

// moment is the clock of the checks of reservations: the caller's, not the counter's.
var moment = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (b *bench) reserve(t *testing.T, id string, now time.Time, takes ...quota.Take) quota.Room {
	t.Helper()
	room, err := b.Reserve(t.Context(), id, takes, quota.Hold{Now: now, Until: now.Add(time.Minute)}, b.expire)
	if err != nil {
		t.Fatal(err)
	}
	return room
}

func (b *bench) settle(t *testing.T, id, name string, takes ...quota.Take) []int64 {
	t.Helper()
	counts, err := b.Settle(t.Context(), id, name, takes, b.expire)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func (b *bench) room(t *testing.T, what string, got quota.Room, denied int, full bool) {
	t.Helper()
	if got.Denied != denied || got.Full != full {
		t.Errorf("%s: denied %d, full %v; want %d, %v", what, got.Denied, got.Full, denied, full)
	}
}

// reserved: what is set aside is nobody else's, is no use, and ends by itself.
func reserved(t *testing.T, b *bench) {
	a, free := quota.Take{Key: "a", N: 6, Limit: 10}, quota.Take{Key: "b", N: 99}
	b.room(t, "first", b.reserve(t, "1", moment, a, free), -1, false)
	b.want(t, abc, 0, 0, 0)
	b.room(t, "while the first has it", b.reserve(t, "2", moment, free, a), 1, false)
	b.room(t, "again", b.reserve(t, "1", moment, a), -1, false)
	a.N = 11
	b.room(t, "more than there is", b.reserve(t, "2", moment, a), 0, true)
	a.N = 4
	b.room(t, "what is left", b.reserve(t, "2", moment, a), -1, false)
	b.room(t, "nothing is left", b.reserve(t, "3", moment, a), 0, false)
	later := moment.Add(time.Minute)
	a.N = 10
	b.room(t, "when all is over", b.reserve(t, "3", later, a), -1, false)
	b.room(t, "the first is too late", b.reserve(t, "1", later, a), 0, false)
	counts := b.settle(t, "3", "s", quota.Take{Key: "a", N: 1})
	equal(t, "settled", counts, -1, -1, 1)
	b.room(t, "a counter that is used", b.reserve(t, "1", later, a), 0, true)
}

// settled: a settlement counts once, whatever has become of what was set aside.
func settled(t *testing.T, b *bench) {
	a := quota.Take{Key: "a", N: 8, Limit: 10}
	b.reserve(t, "1", moment, a)
	use, release := quota.Take{Key: "a", N: 3}, quota.Take{Key: "a"}
	equal(t, "less than was set aside", b.settle(t, "1", "s1", use), -1, -1, 3)
	equal(t, "once more", b.settle(t, "1", "s1", use), -1, -1, 3)
	equal(t, "nothing set aside", b.settle(t, "1", "s2", use), -1, -1, 6)
	a.N = 4
	b.room(t, "the rest", b.reserve(t, "2", moment, a), -1, false)
	equal(t, "given back", b.settle(t, "2", "s3", release, quota.Take{Key: "c"}), -1, -1, 6, 0)
	b.room(t, "after it was given back", b.reserve(t, "3", moment, a), -1, false)
	b.want(t, abc, 6, 0, 0)
	equal(t, "more than was set aside", b.settle(t, "3", "s4", quota.Take{Key: "a", N: 9}), -1, -1, 15)
	b.room(t, "over the limit", b.reserve(t, "4", moment, quota.Take{Key: "a", Limit: 10}), 0, true)
}

// budget: of many who reserve at the same time exactly as many get through as there is room for, although every fifth
// dies before it settles and has its work taken up by another under the same id, or given up.
func budget(t *testing.T, b *bench) {
	const calls, each, limit = 150, 7, 50 * 7
	var mu sync.Mutex
	done := 0
	now := moment
	call := func(n int) bool {
		id := fmt.Sprint("call", n)
		take := quota.Take{Key: "money", N: each, Limit: limit}
		mu.Lock()
		at := now
		mu.Unlock()
		room, err := b.Reserve(
			t.Context(), id, []quota.Take{take}, quota.Hold{Now: at, Until: at.Add(time.Minute)}, b.expire,
		)
		if err != nil {
			t.Error(err)
			return false
		}
		if room.Denied >= 0 || (n%5 == 0 && at.Equal(moment)) { // it dies
			return false
		}
		if _, err := b.Settle(t.Context(), id, id+"/settled", []quota.Take{take}, b.expire); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		return true
	}
	var open []int
	for n := range calls {
		open = append(open, n)
	}
	for range 3 { // all; those that died or found no room, as others take them up; once more when every hold is over
		var wg sync.WaitGroup
		var left []int
		for _, n := range open {
			wg.Go(func() {
				if !call(n) {
					mu.Lock()
					defer mu.Unlock()
					left = append(left, n)
				}
			})
		}
		wg.Wait()
		open = left
		now = now.Add(2 * time.Minute)
	}
	if done != 50 {
		t.Errorf("%d calls got through, want 50", done)
	}
	b.want(t, []string{"money"}, limit)
}
