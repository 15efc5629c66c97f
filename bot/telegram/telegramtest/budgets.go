package telegramtest

import (
	"time"
)

// budgetBook keeps the windows of the flood limits.
type budgetBook struct {
	chats  map[int64]*window
	groups map[int64]*window
	global window
}

// window is a sliding window of accepted calls with the freeze a refusal starts.
type window struct {
	times  []time.Time
	frozen time.Time
}

// charge books one call or refuses it with the longest wait any limit asks for. Ids below zero are groups.
func (b *budgetBook) charge(limits Budgets, chat int64, now time.Time) *apiError {
	if b.chats == nil {
		b.chats, b.groups = map[int64]*window{}, map[int64]*window{}
	}
	type pair struct {
		w *window
		l Limit
	}
	due := []pair{{windowOf(b.chats, chat), limits.Chat}, {&b.global, limits.Global}}
	if chat < 0 {
		due = append(due, pair{windowOf(b.groups, chat), limits.Group})
	}
	var wait time.Duration
	for _, p := range due {
		wait = max(wait, p.w.wait(p.l, now))
	}
	if wait > 0 {
		return tooMany(int((wait + time.Second - 1) / time.Second))
	}
	for _, p := range due {
		if p.l.Count > 0 {
			p.w.times = append(p.w.times, now)
		}
	}
	return nil
}

func windowOf(all map[int64]*window, chat int64) *window {
	w := all[chat]
	if w == nil {
		w = &window{}
		all[chat] = w
	}
	return w
}

// wait is how long the caller has to wait; 0 when the call fits. A call during a freeze makes it a second longer.
func (w *window) wait(l Limit, now time.Time) time.Duration {
	if l.Count <= 0 || l.Per <= 0 {
		return 0
	}
	if now.Before(w.frozen) {
		w.frozen = w.frozen.Add(time.Second)
		return w.frozen.Sub(now)
	}
	old := 0
	for old < len(w.times) && now.Sub(w.times[old]) >= l.Per {
		old++
	}
	w.times = append(w.times[:0], w.times[old:]...)
	if len(w.times) < l.Count {
		return 0
	}
	left := l.Per - now.Sub(w.times[0])
	// retry_after is told in whole seconds, so the freeze is too: who waits exactly as long as told is let in.
	left = (left + time.Second - 1).Truncate(time.Second)
	w.frozen = now.Add(left)
	return left
}
