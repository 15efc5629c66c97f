package state

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Idle returns the lane of an unknown session.
func Idle(session bot.SessionKey) bot.Lane { return bot.Lane{Session: session, State: bot.Idle} }

// Claim takes a lane for a worker. The error is bot.ErrLost if somebody else holds it, or has held it since the
// claimant read its fence.
func Claim(lane bot.Lane, c *bot.Claim) (bot.Lane, error) {
	held := lane.Owner != "" && lane.Until.After(c.Now)
	if held || lane.Fence != c.Fence {
		return lane, fmt.Errorf("claim %s: %w", c.Session, bot.ErrLost)
	}
	lane.Fence++
	lane.Owner, lane.Until = c.Owner, c.Until
	if c.Place.Channel != "" {
		lane.Place = c.Place
	}
	lane.Workspace = cmp.Or(lane.Workspace, c.Workspace)
	return lane, nil
}

// setBegunArrival sets the arrival that a lane's claim was made for. seq 0 means an arrival that is known already, for
// which the error is bot.ErrConflict.
func setBegunArrival(lane bot.Lane, seq int64) (bot.Lane, error) {
	if seq == 0 {
		return lane, fmt.Errorf("begin a turn of %s: the arrival is known: %w", lane.Session, bot.ErrConflict)
	}
	lane.Arrival = seq
	return lane, nil
}

// Holds checks a lease: bot.ErrLost if somebody took over the lane, or nobody holds it.
func Holds(lane bot.Lane, l *bot.Lease) error {
	if lane.Owner == "" || lane.Fence != l.Fence {
		return fmt.Errorf("work on %s: %w", l.Session, bot.ErrLost)
	}
	return nil
}

// Append numbers new journal entries: the first is the previous Lane.Last + 1. The error is bot.ErrConflict if the
// journal has entries that the writer does not know. forget reports that the entries begin a new conversation, so that
// the stored outputs are deleted.
func Append(lane bot.Lane, a *bot.Append) (after bot.Lane, forget bool, err error) {
	if lane.Last != a.After {
		return lane, false, fmt.Errorf("append to %s after %d, it is at %d: %w", a.Session, a.After, lane.Last,
			bot.ErrConflict)
	}
	for i := range a.Entries {
		forget = forget || a.Entries[i].Anew()
	}
	lane.Last += int64(len(a.Entries))
	return lane, forget, nil
}

// Update sets the fields in an update, and then releases the lease if requested.
func Update(lane bot.Lane, u *bot.LaneUpdate) bot.Lane {
	set(&lane.Place, u.Place)
	set(&lane.State, u.State)
	set(&lane.Turn, u.Turn)
	set(&lane.Arrival, u.Arrival)
	set(&lane.Since, u.Since)
	set(&lane.NotBefore, u.NotBefore)
	set(&lane.Failing, u.Failing)
	set(&lane.Stop, u.Stop)
	set(&lane.Live, u.Live)
	set(&lane.Notice, u.Notice)
	set(&lane.Caller, u.Caller)
	set(&lane.Until, u.Until)
	if u.Release {
		return Release(lane)
	}
	return lane
}

// Release gives up the lease; the fence is kept.
func Release(lane bot.Lane) bot.Lane {
	lane.Owner, lane.Until = "", time.Time{}
	return lane
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
