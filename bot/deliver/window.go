package deliver

import (
	"slices"
	"time"
)

// window contains the requests that count against a limit, in the order in which they were admitted.
type window struct {
	per  time.Duration
	gone []*departure
}

// departure is one admitted request. It reaches the server at some moment between its admission and its end, so that it
// counts until a whole window after its end.
type departure struct {
	at   time.Time // when it ended; while it is open, when it was admitted
	open bool
	low  bool
}

// until returns when a departure stops counting; for an open one, the latest time.
func (d *departure) until(per time.Duration) time.Time {
	if d.open {
		return d.at.Add(overdue + per)
	}
	return d.at.Add(per)
}

// fifths returns the part of a limit that Low may use, at least one.
func fifths(limit, part int) int { return max(1, limit*part/5) }

// forget drops what no longer counts.
func (w *window) forget(now time.Time) {
	w.gone = slices.DeleteFunc(w.gone, func(d *departure) bool { return !d.until(w.per).After(now) })
}

// delay returns how long to wait at most until one more request fits; limit 0 = no limit. It may be sooner if an open
// request ends.
func (w *window) delay(limit, lowLimit int, low bool, now time.Time) time.Duration {
	if limit <= 0 {
		return 0
	}
	w.forget(now)
	wait := w.full(limit, false, now)
	if low {
		wait = max(wait, w.full(lowLimit, true, now))
	}
	return wait
}

// full returns how long limit requests, or the modest ones among them, leave no room for another.
func (w *window) full(limit int, lowOnly bool, now time.Time) time.Duration {
	if len(w.gone) < limit {
		return 0
	}
	var ends []time.Time
	for _, d := range w.gone {
		if d.low || !lowOnly {
			ends = append(ends, d.until(w.per))
		}
	}
	if len(ends) < limit {
		return 0
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends[len(ends)-limit].Sub(now)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
