package state

import (
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// expected refuses a Change that was computed from facts that have changed.
func (r *run) expected() error {
	for _, fact := range r.change.Facts {
		if fact.Was == nil {
			continue
		}
		now, _ := r.facts.get(FactKey{fact.Bucket, fact.Key})
		if Over(now.Expires, r.now) {
			now.Value = ""
		}
		if now.Value != *fact.Was {
			return fmt.Errorf("fact %s of %s: %w", fact.Key, fact.Bucket, bot.ErrConflict)
		}
	}
	return nil
}

// setFacts sets the unconditional facts, then those that are only set if absent.
func (r *run) setFacts() {
	for _, fact := range r.change.Facts {
		fact.Was = nil
		r.facts.set(FactKey{fact.Bucket, fact.Key}, fact)
	}
	for _, fact := range r.change.FactsIf {
		key := FactKey{fact.Bucket, fact.Key}
		old, ok := r.facts.get(key)
		free := !ok || old.Value == "" || Over(old.Expires, r.now)
		if free {
			r.facts.set(key, fact)
		}
		r.result.Applied.Set = append(r.result.Applied.Set, free)
	}
}

// Over reports whether a lifetime has ended; zero = it has no end.
func Over(end, now time.Time) bool { return !end.IsZero() && !end.After(now) }
