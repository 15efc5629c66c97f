package state

import (
	"fmt"

	"github.com/zephbot/zephbot/bot"
)

// holdBegin returns the lane of an arrival with which no turn is to begin as it was: a worker may have read it in the
// idle lane, and its claim becomes void. began reports that a turn has begun with it.
func holdBegin(lane bot.Lane, seq int64) (held bot.Lane, began bool) {
	if lane.Turn != "" && lane.Arrival == seq {
		return lane, true
	}
	if lane.Turn == "" && lane.Owner == "" {
		lane.Fence++
	}
	return lane, false
}

// replace gives arrivals that wait a new content.
func (r *run) replace() error {
	for i := range r.change.Replace {
		c := &r.change.Replace[i]
		a, ok := r.arrivals.get(c.Seq)
		if !ok {
			return fmt.Errorf("arrival %d: %w", c.Seq, bot.ErrNotFound)
		}
		if a.State != Waiting {
			return fmt.Errorf("replace arrival %d: %w", c.Seq, bot.ErrHandled)
		}
		lane, began := holdBegin(r.lane(c.Session), c.Seq)
		if began {
			return fmt.Errorf("replace arrival %d of %s: its turn has begun: %w", c.Seq, c.Session, bot.ErrConflict)
		}
		r.lanes.set(c.Session, lane)
		r.result.Replace = append(r.result.Replace, i)
	}
	return nil
}
