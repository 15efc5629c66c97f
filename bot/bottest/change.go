package bottest

import (
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

func (s *Store) lane(session string) bot.Lane {
	lane, ok := s.lanes[session]
	if !ok {
		return bot.Lane{Session: session, State: bot.Idle}
	}
	return lane
}

func (t *step) claim() error {
	c := t.change.Claim
	if c == nil {
		return nil
	}
	lane := t.lane(c.Session)
	held := lane.Owner != "" && lane.Until.After(c.Now)
	if held || lane.Fence != c.Fence {
		return fmt.Errorf("claim %s: %w", c.Session, bot.ErrLost)
	}
	lane.Fence++
	lane.Owner, lane.Until = c.Owner, utc(c.Until)
	if c.Place.Channel != "" {
		lane.Place = c.Place
	}
	put(t, t.lanes, c.Session, lane)
	t.applied.Fence = lane.Fence
	return t.mayBegin(c)
}

// mayBegin refuses a claim whose arrival does not wait any more, or has others in front of it.
func (t *step) mayBegin(c *bot.Claim) error {
	refused := false
	switch {
	case c.Arrives:
		for _, a := range t.arrivals {
			refused = refused || (a.state == waiting && !a.Express && a.Session == c.Session)
		}
	case c.Arrival != 0:
		a, ok := t.arrivals[c.Arrival]
		refused = !ok || a.state != waiting
	}
	if refused {
		return fmt.Errorf("begin a turn of %s: %w", c.Session, bot.ErrConflict)
	}
	return nil
}

func (t *step) lease() error {
	l := t.change.Lease
	if l == nil {
		return nil
	}
	if lane := t.lane(l.Session); lane.Owner == "" || lane.Fence != l.Fence {
		return fmt.Errorf("work on %s: %w", l.Session, bot.ErrLost)
	}
	return nil
}

func (t *step) arrive() error {
	for i := range t.change.Arrive {
		a := t.change.Arrive[i]
		key := arrivalKey{a.Channel, a.Bot, a.ID}
		if _, ok := t.arrived[key]; ok {
			t.applied.Seqs = append(t.applied.Seqs, 0)
			continue
		}
		t.counters.seq++
		a.Seq, a.Attempts, a.Problem, a.At = t.counters.seq, 0, "", utc(a.At)
		a.Raw = append([]byte(nil), a.Raw...)
		put(t, t.arrivals, a.Seq, arrival{Arrival: a, state: waiting})
		put(t, t.arrived, key, a.Seq)
		t.applied.Seqs = append(t.applied.Seqs, a.Seq)
	}
	if t.change.Claim == nil || !t.change.Claim.Arrives {
		return nil
	}
	lane := t.lane(t.change.Claim.Session)
	if lane.Arrival = t.applied.Seqs[0]; lane.Arrival == 0 {
		return fmt.Errorf("begin a turn of %s: the arrival is known: %w", lane.Session, bot.ErrConflict)
	}
	put(t, t.lanes, lane.Session, lane)
	return nil
}

func (t *step) finish() error {
	for _, seq := range t.change.Done {
		if err := t.arrivalUpdate(seq, func(a *arrival) { a.state = done }); err != nil {
			return err
		}
	}
	for _, letter := range t.change.Retry {
		err := t.arrivalUpdate(letter.Seq, func(a *arrival) {
			if a.state == waiting {
				a.Attempts++
				a.Problem = letter.Problem
			}
		})
		if err != nil {
			return err
		}
	}
	for _, letter := range t.change.Dead {
		err := t.arrivalUpdate(letter.Seq, func(a *arrival) {
			if a.state == waiting {
				a.state, a.Problem = dead, letter.Problem
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *step) arrivalUpdate(seq int64, set func(*arrival)) error {
	a, ok := t.arrivals[seq]
	if !ok {
		return fmt.Errorf("arrival %d: %w", seq, bot.ErrNotFound)
	}
	set(&a)
	put(t, t.arrivals, seq, a)
	return nil
}

func (t *step) append() error {
	a := t.change.Append
	if a == nil {
		return nil
	}
	lane := t.lane(a.Session)
	if lane.Last != a.After {
		return fmt.Errorf("append to %s after %d, it is at %d: %w", a.Session, a.After, lane.Last, bot.ErrConflict)
	}
	return t.write(lane, a.Entries)
}

// write adds entries at the end of a lane's journal.
func (t *step) write(lane bot.Lane, entries []journal.Entry) error {
	journal := slices.Clone(t.journal[lane.Session])
	for _, entry := range entries {
		entry.At = utc(entry.At)
		stored, err := copied(entry)
		if err != nil {
			return err
		}
		lane.Last++
		stored.N = lane.Last
		journal = append(journal, stored)
	}
	put(t, t.journal, lane.Session, journal)
	put(t, t.lanes, lane.Session, lane)
	return nil
}

func (t *step) laneUpdates() error {
	for i := range t.change.Lanes {
		u := &t.change.Lanes[i]
		lane := t.lane(u.Session)
		set(&lane.Place, u.Place)
		set(&lane.State, u.State)
		set(&lane.Turn, u.Turn)
		set(&lane.Arrival, u.Arrival)
		setTime(&lane.Since, u.Since)
		setTime(&lane.NotBefore, u.NotBefore)
		setTime(&lane.Failing, u.Failing)
		set(&lane.Stop, u.Stop)
		set(&lane.Live, u.Live)
		set(&lane.Notice, u.Notice)
		set(&lane.Caller, u.Caller)
		setTime(&lane.Until, u.Until)
		if u.Release {
			lane.Owner, lane.Until = "", time.Time{}
		}
		put(t, t.lanes, u.Session, lane)
	}
	return nil
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func setTime(field, value *time.Time) {
	if value != nil {
		*field = utc(*value)
	}
}

func (t *step) setFacts() error {
	for _, fact := range t.change.Facts {
		fact.Expires = utc(fact.Expires)
		if key := (factKey{fact.Bucket, fact.Key}); fact.Value == "" {
			drop(t, t.facts, key)
		} else {
			put(t, t.facts, key, fact)
		}
	}
	for _, fact := range t.change.FactsIf {
		fact.Expires = utc(fact.Expires)
		key := factKey{fact.Bucket, fact.Key}
		old, ok := t.facts[key]
		free := !ok || over(old.Expires, t.Now())
		if free {
			put(t, t.facts, key, fact)
		}
		t.applied.Set = append(t.applied.Set, free)
	}
	return nil
}

func (t *step) charge() error {
	for _, charge := range t.change.Charges {
		if _, ok := t.charges[charge.Key]; !ok {
			put(t, t.charges, charge.Key, charge)
		}
	}
	return nil
}
