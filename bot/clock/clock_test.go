package clock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/bot/clock"
)

// wall is a clock that somebody sets: what it shows has no reading of the machine's own clock, as after a suspension.
type wall struct{ ahead atomic.Int64 }

func (w *wall) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(w.ahead.Load()))
}

func (w *wall) set(by time.Duration) { w.ahead.Add(int64(by)) }

func TestUntil(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait  time.Duration // until the time
		set   time.Duration // by how much the clock is set, 10 s after the beginning
		least time.Duration // of running time until it returns
		most  time.Duration
	}{
		"over already":            {-time.Hour, 0, 0, 0},
		"as the clock runs":       {time.Hour, 0, time.Hour, time.Hour},
		"a night's sleep":         {time.Hour, 8 * time.Hour, 10 * time.Second, 11 * time.Second},
		"set forward, not far":    {time.Hour, time.Minute, 59 * time.Minute, 59 * time.Minute},
		"set back":                {time.Hour, -time.Hour, 2 * time.Hour, 2 * time.Hour},
		"a fraction of a second":  {300 * time.Millisecond, 0, 300 * time.Millisecond, 300 * time.Millisecond},
		"set forward to the time": {time.Hour, time.Hour - 10*time.Second, 10 * time.Second, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var w wall
				began := time.Now()
				if test.set != 0 {
					time.AfterFunc(10*time.Second, func() { w.set(test.set) })
				}
				if !clock.Until(t.Context(), w.now, w.now().Add(test.wait), 0, nil) {
					t.Error("it says that ctx ended")
				}
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("it took %s, want %s to %s", took, test.least, test.most)
				}
			})
		})
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		began := time.Now()
		if clock.Until(ctx, time.Now, began.Add(time.Hour), 0, nil) || time.Since(began) != 90*time.Second {
			t.Errorf("it ended after %s", time.Since(began))
		}
		if clock.Until(ctx, time.Now, began, 0, nil) {
			t.Error("it says that the time has come, after ctx ended")
		}
	})
}

func TestUntilIsWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		time.AfterFunc(90*time.Second, func() { wake <- struct{}{} })
		began := time.Now()
		if clock.Until(t.Context(), time.Now, began.Add(time.Hour), time.Minute, wake) || time.Since(began) != 90*time.Second {
			t.Errorf("it ended after %s", time.Since(began))
		}
	})
}

// A wait that began before the clock was set back takes no longer than it was to take.
func TestLeft(t *testing.T) {
	t.Parallel()
	now := time.Now() // has a reading of the machine's own clock
	at := now.Add(time.Minute)
	if got := clock.Left(at, now); got != time.Minute {
		t.Errorf("%s left", got)
	}
	if got := clock.Left(at.Round(0), now.Add(-time.Hour)); got != time.Hour+time.Minute {
		t.Errorf("%s left until a stored time, after the clock was set back", got)
	}
}
