package sql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// step is one Change under way, within the writer's transaction.
type step struct {
	q       *queries
	now     func() time.Time
	change  *bot.Change
	applied *bot.Applied
	lanes   *lanes
	held    map[string]*bot.Lane // lanes as this Change leaves them
	touched []*bot.Lane          // those that it changed, in order
}

// applyChange does everything a Change asks for, in the order that bot.Change promises.
func applyChange(ctx context.Context, q *queries, l *lanes, change *bot.Change, now func() time.Time) (*bot.Applied, error) {
	t := &step{q: q, now: now, change: change, applied: &bot.Applied{}, lanes: l, held: map[string]*bot.Lane{}}
	for _, part := range []func(context.Context) error{
		t.claim, t.lease, t.arrive, t.finish, t.append, t.laneUpdates, t.ask, t.decide, t.cancel, t.send, t.cards, t.rowUpdates,
		t.facts, t.factsIf, t.charge, t.placeholder, t.keep, t.move,
	} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return t.applied, nil
}

// lane gives the lane that this Change works on; one never seen is idle.
func (t *step) lane(ctx context.Context, session string) (*bot.Lane, error) {
	if lane, ok := t.held[session]; ok {
		return lane, nil
	}
	lane, err := t.lanes.get(ctx, t.q, session)
	if err != nil {
		return nil, err
	}
	t.held[session] = &lane
	return &lane, nil
}

// touch says that a lane is to be written back.
func (t *step) touch(lane *bot.Lane) {
	if !slices.Contains(t.touched, lane) {
		t.touched = append(t.touched, lane)
	}
}

const (
	doneArrival  = `UPDATE inbox SET state = 'done', finished = CASE WHEN finished > 0 THEN finished ELSE ? END WHERE seq = ?`
	retryArrival = `UPDATE inbox SET attempts = attempts + 1, problem = ? WHERE seq = ? AND state = 'waiting'`
	deadArrival  = `UPDATE inbox SET state = 'dead', problem = ?, finished = ? WHERE seq = ? AND state = 'waiting'`
	findArrival  = `SELECT seq FROM inbox WHERE seq = ?`
	insertEntry  = `INSERT INTO journal (session, n, reset, body) VALUES (?, ?, ?, ?)`
)

// keep hands the touched lanes over, once nothing can refuse the Change any more.
func (t *step) keep(context.Context) error {
	for _, lane := range t.touched {
		t.lanes.put(lane)
	}
	return nil
}

func (t *step) claim(ctx context.Context) error {
	c := t.change.Claim
	if c == nil {
		return nil
	}
	lane, err := t.lane(ctx, c.Session)
	if err != nil {
		return err
	}
	held := lane.Owner != "" && lane.Until.After(c.Now)
	if held || lane.Fence != c.Fence {
		return fmt.Errorf("claim %s: %w", c.Session, bot.ErrLost)
	}
	lane.Fence++
	lane.Owner, lane.Until = c.Owner, c.Until
	if c.Place.Channel != "" {
		lane.Place = c.Place
	}
	t.touch(lane)
	t.applied.Fence = lane.Fence
	return t.mayBegin(ctx, c)
}

const (
	anyWaiting = `SELECT seq FROM inbox WHERE state = 'waiting' AND express = 0 AND session <> '' AND session = CAST(? AS TEXT) LIMIT 1`
	oneWaiting = `SELECT seq FROM inbox WHERE seq = ? AND state = 'waiting'`
)

// mayBegin refuses a claim whose arrival does not wait any more, or has others in front of it.
func (t *step) mayBegin(ctx context.Context, c *bot.Claim) error {
	found, want := false, false
	var err error
	switch read := func(scan scanner) error { return scan(new(int64)) }; {
	case c.Arrives:
		found, err = t.q.one(ctx, read, anyWaiting, c.Session)
	case c.Arrival != 0:
		want = true
		found, err = t.q.one(ctx, read, oneWaiting, c.Arrival)
	}
	if err != nil {
		return fmt.Errorf("find arrival: %w", err)
	}
	if found != want {
		return fmt.Errorf("begin a turn of %s: %w", c.Session, bot.ErrConflict)
	}
	return nil
}

func (t *step) lease(ctx context.Context) error {
	l := t.change.Lease
	if l == nil {
		return nil
	}
	lane, err := t.lane(ctx, l.Session)
	if err != nil {
		return err
	}
	if lane.Owner == "" || lane.Fence != l.Fence {
		return fmt.Errorf("work on %s: %w", l.Session, bot.ErrLost)
	}
	return nil
}

// insertArrival asks before it inserts: a conflict alone would use up a number.
const insertArrival = `INSERT INTO inbox (channel, bot, id, session, express, raw, at) SELECT ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE channel = ? AND bot = ? AND id = ?)`

func (t *step) arrive(ctx context.Context) error {
	for i := range t.change.Arrive {
		a := &t.change.Arrive[i]
		seq, err := t.q.inserted(ctx, insertArrival,
			a.Channel, a.Bot, a.ID, a.Session, bit(a.Express), blob(a.Raw), nanos(a.At), a.Channel, a.Bot, a.ID)
		if err != nil {
			return fmt.Errorf("store arrival: %w", err)
		}
		t.applied.Seqs = append(t.applied.Seqs, seq)
	}
	return t.arrived(ctx)
}

// arrived gives the lane the arrival that the claim was made for.
func (t *step) arrived(ctx context.Context) error {
	if t.change.Claim == nil || !t.change.Claim.Arrives {
		return nil
	}
	lane, err := t.lane(ctx, t.change.Claim.Session)
	if err != nil {
		return err
	}
	if lane.Arrival = t.applied.Seqs[0]; lane.Arrival == 0 {
		return fmt.Errorf("begin a turn of %s: the arrival is known: %w", lane.Session, bot.ErrConflict)
	}
	return nil
}

// finish moves arrivals on: done, failed, given up.
func (t *step) finish(ctx context.Context) error {
	for _, seq := range t.change.Done {
		err := t.arrivalUpdate(ctx, seq, doneArrival, nanos(t.now()), seq)
		if err != nil {
			return err
		}
	}
	for _, letter := range t.change.Retry {
		err := t.arrivalUpdate(ctx, letter.Seq, retryArrival, letter.Problem, letter.Seq)
		if err != nil {
			return err
		}
	}
	for _, letter := range t.change.Dead {
		err := t.arrivalUpdate(ctx, letter.Seq, deadArrival, letter.Problem, nanos(t.now()), letter.Seq)
		if err != nil {
			return err
		}
	}
	return nil
}

// arrivalUpdate runs an update of one arrival; an arrival that does not wait any more may be left as it is, one that is not there may not.
func (t *step) arrivalUpdate(ctx context.Context, seq int64, query string, args ...any) error {
	n, err := t.q.changed(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("update arrival: %w", err)
	}
	if n > 0 {
		return nil
	}
	found, err := t.q.one(ctx, func(scan scanner) error { return scan(new(int64)) }, findArrival, seq)
	if err != nil {
		return fmt.Errorf("find arrival: %w", err)
	}
	if !found {
		return fmt.Errorf("arrival %d: %w", seq, bot.ErrNotFound)
	}
	return nil
}

func (t *step) append(ctx context.Context) error {
	a := t.change.Append
	if a == nil {
		return nil
	}
	lane, err := t.lane(ctx, a.Session)
	if err != nil {
		return err
	}
	if lane.Last != a.After {
		return fmt.Errorf("append to %s after %d, it is at %d: %w", a.Session, a.After, lane.Last, bot.ErrConflict)
	}
	for i := range a.Entries {
		lane.Last++
		if err := writeEntry(ctx, t.q, a.Session, lane.Last, a.Entries[i]); err != nil {
			return err
		}
		if a.Entries[i].Anew() {
			if err := t.q.exec(ctx, resetOverflow, a.Session); err != nil {
				return fmt.Errorf("forget stored outputs: %w", err)
			}
		}
	}
	t.touch(lane)
	return nil
}

func writeEntry(ctx context.Context, q *queries, session string, n int64, entry journal.Entry) error {
	if !entry.At.IsZero() {
		entry.At = entry.At.UTC()
	}
	body, err := encode(entry)
	if err != nil {
		return err
	}
	reset := 0
	if entry.Begins() {
		reset = 1
	}
	if err := q.exec(ctx, insertEntry, session, n, reset, body); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func (t *step) laneUpdates(ctx context.Context) error {
	for i := range t.change.Lanes {
		u := &t.change.Lanes[i]
		lane, err := t.lane(ctx, u.Session)
		if err != nil {
			return err
		}
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
			lane.Owner, lane.Until = "", time.Time{}
		}
		t.touch(lane)
	}
	return nil
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func (t *step) placeholder(ctx context.Context) error {
	session := t.change.PlaceholderOf
	if session == "" {
		return nil
	}
	lane, err := t.lane(ctx, session)
	if err != nil {
		return err
	}
	lane.Live = t.applied.Rows[0]
	t.touch(lane)
	return nil
}
