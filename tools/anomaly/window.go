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
	person, name string // caller, and how they call themselves
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

// everywhere reports whether the calls failed for each person who made any, and enough of them were not those of the
// person with the most. size is the number of calls in a full window.
func (w *window) everywhere(critical float64, size int) bool {
	all, bad := map[string]int{}, map[string]int{}
	most := 0
	for _, s := range w.samples {
		all[s.person]++
		most = max(most, all[s.person])
		if s.failed {
			bad[s.person]++
		}
	}
	for person, n := range all {
		if float64(bad[person]) < critical*float64(n) {
			return false
		}
	}
	return len(w.samples)-most >= max(1, size/othersShare)
}
