package anomaly

import (
	"slices"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// window holds the last calls of one tool, the oldest first.
type window struct {
	used    time.Time
	samples []sample
	level   Level // that was reached last
}

// sample is how one call ended, or how it stands between two tries.
type sample struct {
	session  string
	call     string // session and call id: another try of the same call takes its place; "" = a call without an id
	failed   bool
	drop     bool // it says nothing
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

// last is the category of the last failure.
func (w *window) last() tools.Category {
	for _, s := range slices.Backward(w.samples) {
		if s.failed {
			return s.category
		}
	}
	return ""
}

// everywhere says that several conversations made the calls, and that they failed to each of them.
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
