package anomaly

import (
	"slices"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// window holds the latest calls of one tool, oldest first.
type window struct {
	used    time.Time
	samples []sample
	level   Level // the level reached last
}

// sample is the outcome of one call, or its state between two attempts.
type sample struct {
	session string
	// session and call id: a further attempt of the same call replaces the sample; "" = a call without an id
	call     string
	failed   bool
	drop     bool // it does not count
	category tools.Category
}

func (w *window) add(s sample, size int, now time.Time) {
	w.used = now
	w.samples = slices.DeleteFunc(w.samples, func(other sample) bool { return s.call != "" && other.call == s.call })
	if s.drop {
		return
	}
	w.samples = append(w.samples, s)
	if len(w.samples) > size {
		w.samples = slices.Delete(w.samples, 0, len(w.samples)-size)
	}
}

func (w *window) count() (failures, samples int) {
	for _, s := range w.samples {
		if s.failed {
			failures++
		}
	}
	return failures, len(w.samples)
}

// last returns the category of the last failure.
func (w *window) last() tools.Category {
	for _, s := range slices.Backward(w.samples) {
		if s.failed {
			return s.category
		}
	}
	return ""
}

// everywhere reports whether several sessions made the calls and the calls failed in each of them.
func (w *window) everywhere(critical float64) bool {
	all, bad := map[string]int{}, map[string]int{}
	for _, s := range w.samples {
		all[s.session]++
		if s.failed {
			bad[s.session]++
		}
	}
	for session, n := range all {
		if float64(bad[session]) < critical*float64(n) {
			return false
		}
	}
	return len(all) >= leastConversations
}
