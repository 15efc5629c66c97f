package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
	"github.com/zephbot/zephbot/policy/reason"
)

// meetings is how often a Change can conflict with faster ones before it is given up.
const meetings = 50

// Apply implements bot.Writer. While the server is down, Apply retries for Options.Patience, or until ctx ends. Once
// statements have been sent, the commit decides. In addition to the errors of bot.Change there are
// *keeping.Unavailable, which says so if it is unknown whether the Change was made, keeping.ErrBuried and
// keeping.ErrClosed.
func (s *Store) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if err := change.Validate(); err != nil {
		return nil, err
	}
	done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	if change.Claim != nil || len(change.Lanes) > 0 {
		if err := s.clock.renew(ctx, &s.reader); err != nil {
			return nil, err
		}
	}
	needs := state.NeedsOf(change)
	t := &try{store: s, change: s.stored(change), original: change, needs: &needs, wait: newPause(s.options.Patience)}
	applied, err := t.run(ctx)
	if codeOf(err) == codeOusted {
		s.hold.end()
	}
	var failed *keeping.Unavailable
	errors.As(err, &failed)
	s.failing.Store(failed) // a Change that is refused shows that the server works
	return applied, err
}

// stored returns a Change whose leases end by the clock of the database.
func (s *Store) stored(change *bot.Change) *bot.Change {
	if s.clock.apart.Load() == 0 {
		return change
	}
	c := *change
	if c.Claim != nil {
		claim := *c.Claim
		claim.Now, claim.Until = s.clock.stored(claim.Now), s.clock.stored(claim.Until)
		c.Claim = &claim
	}
	c.Lanes = append([]bot.LaneUpdate(nil), c.Lanes...)
	for i := range c.Lanes {
		if until := c.Lanes[i].Until; until != nil {
			at := s.clock.stored(*until)
			c.Lanes[i].Until = &at
		}
	}
	return &c
}

// try is an attempt to store a Change.
type try struct {
	store    *Store
	change   *bot.Change
	original *bot.Change // for the hooks
	needs    *state.Needs
	wait     *pause
	met      int
	locked   bool // the remembered state was wrong or incomplete
}

// run retries the Change until it is made or refused.
func (t *try) run(ctx context.Context) (*bot.Applied, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("apply change: %w", err)
		}
		w := newWrite(t.change, t.needs, t.store.hold)
		err := t.once(ctx, w)
		switch {
		case err == nil:
			return w.applied(), nil
		case errors.Is(err, errWithdrawn):
			return nil, fmt.Errorf("apply change: %w", ctx.Err())
		}
		what := fateOf(err)
		if what == unknown && w.result != nil {
			made, settled := t.settle(ctx, w)
			switch {
			case settled != nil:
				return nil, t.store.doubt(settled)
			case made:
				t.made(w)
				return w.applied(), nil
			}
		}
		if err := t.repeat(ctx, what, err); err != nil {
			return nil, err
		}
	}
}

// repeat returns nil if a Change that was not made is to be tried again, or else the error that ends it.
func (t *try) repeat(ctx context.Context, what fate, err error) error {
	t.store.memory.forget(t.needs)
	t.locked = true
	switch what {
	case again:
		if t.met++; t.met > meetings {
			return &keeping.Unavailable{
				Path: t.store.where, Op: "write",
				Reason: reason.Plain("too many others change the same rows; nothing was stored"), Err: err,
			}
		}
		return nil
	case away, unknown:
		if codeOf(err) == readOnlyServer {
			t.store.pool.Reset() // the server was demoted: a new connection may find the new primary
		}
		if t.wait.next(ctx) {
			return nil
		}
	case refused:
	}
	return unavailable(t.store.where, "write", err)
}

// made records a Change that is durable.
func (t *try) made(w *write) {
	w.remember(t.store.memory)
	if w.change.Move != nil {
		t.store.memory.drop()
	}
	t.store.committed([]*bot.Change{t.original})
}

// committed tells the hook which Changes one transaction has made.
func (s *Store) committed(changes []*bot.Change) {
	if hook := s.options.Hooks.AfterCommit; hook != nil {
		hook(changes)
	}
}

// once makes the Change in a group.
func (t *try) once(ctx context.Context, w *write) error {
	lock := t.locked || !w.guessed(t.store.memory)
	return t.store.groups.send(ctx, &member{try: t, write: w, lock: lock, done: make(chan struct{})})
}

// decide runs the Change on the world.
func (w *write) decide(now time.Time) (err error) {
	w.result, err = state.Run(w.change, w.world, now)
	return err
}

const (
	// giveUp prevents a Change from being made later: its statements may still be on their way.
	giveUp = `INSERT INTO applied (change, made, at) VALUES ($1, false,
		(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint)
	ON CONFLICT (change) DO NOTHING`
	wasMade  = `SELECT made FROM applied WHERE change = $1`
	rowsMade = `SELECT id FROM outbox WHERE session = ANY($1::text[]) AND change = $2 ORDER BY id`
)

// settle finds out whether a Change whose answer was lost was made, and prevents it from being made later. An error
// means that the outcome is unknown.
func (t *try) settle(ctx context.Context, w *write) (made bool, err error) {
	for {
		made, err = t.look(ctx, w)
		if err == nil || !passing(err) || !t.wait.next(context.WithoutCancel(ctx)) {
			return made, err
		}
	}
}

func (t *try) look(ctx context.Context, w *write) (made bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answering)
	defer cancel()
	w.seqs, w.ids = nil, nil
	b := &batch{}
	b.do(giveUp, w.number)
	if err := b.send(ctx, t.store.pool, t.store.told); err != nil {
		return false, err
	}
	b = &batch{}
	b.read(func(scan reading.Scan) error { return scan(&made) }, wasMade, w.number)
	var sessions []bot.SessionKey
	for _, n := range w.result.Send {
		sessions = append(sessions, w.change.Send[n.Index].Session)
	}
	b.read(func(scan reading.Scan) error {
		var id int64
		err := scan(&id)
		w.ids = append(w.ids, id)
		return err
	}, rowsMade, sessions, w.number)
	seqs := map[state.ArrivalKey]int64{}
	channels, bots, ids := keyColumns(t.needs.Arrived)
	b.read(func(scan reading.Scan) error {
		var key state.ArrivalKey
		var seq int64
		err := scan(&key.Channel, &key.Bot, &key.ID, &seq)
		seqs[key] = seq
		return err
	}, arrived, channels, bots, ids)
	if err := b.send(ctx, t.store.pool, t.store.told); err != nil || !made {
		return false, err
	}
	for _, n := range w.result.Arrive {
		a := &w.change.Arrive[n.Index]
		w.seqs = append(w.seqs, seqs[state.ArrivalKey{Channel: a.Channel, Bot: a.Bot, ID: a.ID}])
	}
	if len(w.ids) != len(w.result.Send) {
		return false, fmt.Errorf("the change was made, but only %d of its %d rows were found",
			len(w.ids), len(w.result.Send))
	}
	return true, nil
}

// doubt is the error of a Change whose outcome is unknown.
func (s *Store) doubt(err error) error {
	return &keeping.Unavailable{
		Path: s.where, Op: "commit", Err: err,
		Reason: reason.Plain(
			"the connection to the server was lost while a change was being stored; it may have been stored",
		),
	}
}
