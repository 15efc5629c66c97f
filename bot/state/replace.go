package state

import (
	"fmt"

	"github.com/zephbot/zephbot/bot"
)

// replaceArrival returns the lane of an arrival that gets a new content. A worker may have read the former content of
// an idle lane: its claim becomes void. The error is bot.ErrConflict if the arrival has begun a turn.
func replaceArrival(lane bot.Lane, seq int64) (bot.Lane, error) {
	if lane.Turn != "" && lane.Arrival == seq {
		return lane, fmt.Errorf("replace arrival %d of %s: its turn has begun: %w", seq, lane.Session, bot.ErrConflict)
	}
	if lane.Turn == "" && lane.Owner == "" {
		lane.Fence++
	}
	return lane, nil
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
		lane, err := replaceArrival(r.lane(c.Session), c.Seq)
		if err != nil {
			return err
		}
		r.lanes.set(c.Session, lane)
		r.result.Replace = append(r.result.Replace, i)
	}
	return nil
}
