package dispatch

// A turn is stopped by a command, a button or another message, in whichever process it runs: the request is stored in
// its lane, and who holds the lane hears of it when the lease is extended.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// breakTurns stops the turns in progress that a waiting command interrupts.
func (d *Dispatcher) breakTurns(ctx context.Context) {
	d.mu.Lock()
	sessions := d.breaks
	d.breaks = map[bot.SessionKey]bool{}
	d.mu.Unlock()
	for session := range sessions {
		if err := d.breakTurn(ctx, session); err != nil {
			d.report(ctx, err, "stop a turn")
			d.mu.Lock()
			d.breaks[session] = true
			d.mu.Unlock()
		}
	}
}

func (d *Dispatcher) breakTurn(ctx context.Context, session bot.SessionKey) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("stopping a turn panicked")
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	lane, err := d.parts.Store.Lane(ctx, session)
	if err != nil || lane.Turn == "" {
		if err == nil && d.breakLater(session) { // the turn has begun in the meantime
			lane, err = d.parts.Store.Lane(ctx, session)
		}
		if err != nil || lane.Turn == "" {
			return err
		}
	}
	waiting, err := d.parts.Store.Next(ctx, session, lookAhead)
	if err != nil {
		return err
	}
	if cause := d.interrupted(ctx, &lane, waiting); cause != nil {
		return d.stopTurn(ctx, &lane, cause)
	}
	return nil
}

// breakLater arranges that a turn whose beginning is still being stored is looked at again once it is stored. It
// reports whether it is stored already.
func (d *Dispatcher) breakLater(session bot.SessionKey) (begun bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobs[session]
	if j == nil || j.cancel == nil {
		return false
	}
	j.broken = true
	return j.held
}

// stopTurn requests the end of a turn in any process, and ends it at once if it runs in this one.
func (d *Dispatcher) stopTurn(ctx context.Context, lane *bot.Lane, cause error) error {
	_, err := d.parts.Store.Apply(ctx, &bot.Change{Lanes: []bot.LaneUpdate{{Session: lane.Session, Stop: &lane.Turn}}})
	d.stop(lane.Session, lane.Turn, cause)
	return err
}

// stopTap handles the Stop button of a draft. It never stops a turn that a later message began.
func (d *Dispatcher) stopTap(ctx context.Context, a *bot.Arrival, msg *bot.Message) (turn.Effect, error) {
	session := d.session(msg)
	lane, err := d.parts.Store.Lane(ctx, session)
	if err != nil || lane.Turn == "" || lane.Arrival > a.Seq {
		return turn.Effect{}, err
	}
	waiting, err := d.parts.Store.Next(ctx, session, lookAhead)
	if err != nil {
		return turn.Effect{}, err
	}
	return turn.Effect{
		Change: bot.Change{
			Lanes: []bot.LaneUpdate{{Session: session, Stop: new(lane.Turn)}},
			Done:  editsOf(waiting, lane.Turn), // or the turn would go on with them
		},
		Stop: []bot.SessionKey{session},
	}, nil
}

// stopDropped stops a turn whose message a command dropped while the turn was beginning.
func (d *Dispatcher) stopDropped(ctx context.Context, session bot.SessionKey, done []int64) {
	d.endReading(session, done, agent.ErrStopped)
	lane, err := d.parts.Store.Lane(ctx, session)
	if err == nil && lane.Turn != "" && !isStopRequested(&lane) && slices.Contains(done, lane.Arrival) {
		err = d.stopTurn(ctx, &lane, agent.ErrStopped)
	}
	d.report(ctx, err, "stop a dropped message")
}

// stop cancels a turn if it runs in this process, and wakes the session so that a parked turn is ended too. An empty
// turn means the current one.
func (d *Dispatcher) stop(session bot.SessionKey, turn string, cause error) {
	d.mu.Lock()
	if j := d.jobs[session]; j != nil && j.cancel != nil && (turn == "" || j.turn == turn) {
		j.cancel(d.stopCause(session, j.turn, cause))
	}
	d.mu.Unlock()
	d.enqueue(session)
}

// stopCause returns the cause with which a turn is cancelled. d.mu must be held.
func (d *Dispatcher) stopCause(session bot.SessionKey, turn string, cause error) error {
	if d.leaving[session] == turn {
		return agent.ErrGone
	}
	return cause
}

// isStopRequested reports whether the turn in progress was asked to stop. A request that was meant for an earlier turn does not
// count.
func isStopRequested(lane *bot.Lane) bool { return lane.Turn != "" && lane.Stop == lane.Turn }

// cause returns with what a turn in progress has to be cancelled, because of what waits in its session, or because it
// was asked to stop; nil = with nothing.
func (d *Dispatcher) cause(ctx context.Context, lane *bot.Lane, waiting []bot.Arrival, stop bool) error {
	if cause := d.interrupted(ctx, lane, waiting); cause != nil {
		return cause
	}
	switch {
	case !stop:
		return nil
	case len(editsOf(waiting, lane.Turn)) > 0:
		return agent.ErrRevised
	default:
		return agent.ErrStopped
	}
}

// interrupted returns with what a turn in progress is cancelled because of a waiting message whose sender may do that;
// nil = there is none.
func (d *Dispatcher) interrupted(ctx context.Context, lane *bot.Lane, waiting []bot.Arrival) (cause error) {
	for i := range waiting {
		if waiting[i].Seq == lane.Arrival {
			continue
		}
		msg, err := d.decodeArrival(&waiting[i])
		if err != nil {
			continue
		}
		command := d.class(&msg) == turn.Interrupts
		if !command && !d.overtakes(lane, &waiting[i], &msg) {
			continue
		}
		verdict, err := d.parts.Guard.Admit(ctx, &msg)
		switch {
		case err != nil:
			d.report(ctx, err, "check who may talk")
		case !verdict.OK:
		case command:
			return agent.ErrStopped
		default:
			cause = agent.ErrOvertaken
		}
	}
	return cause
}

// overtakes reports whether a message ends the turn of its person that was running when it arrived.
func (d *Dispatcher) overtakes(lane *bot.Lane, a *bot.Arrival, msg *bot.Message) bool {
	return d.interrupts(a, msg) && lane.State != bot.Parked && msg.Caller == lane.Caller && a.At.After(lane.Since)
}

// interrupts reports whether a message ends what is done for its sender.
func (d *Dispatcher) interrupts(a *bot.Arrival, msg *bot.Message) bool {
	return d.busy(msg.Caller) == Interrupt && !a.Source.Unsent() && msg.Kind == bot.Text && msg.Command == "" &&
		!msg.FromBot && msg.Place.Ordinary()
}

// stopSpeech ends what is being spoken to the sender of a message that interrupts it, before its turn begins.
func (d *Dispatcher) stopSpeech(ctx context.Context, session bot.SessionKey, t *task) {
	if d.parts.Speech == nil || !d.interrupts(t.arrival, t.msg) {
		return
	}
	n, _, err := d.parts.Speech.Stopping(ctx, session, t.msg.Caller)
	if n > 0 {
		err = d.ApplyEffect(ctx, func() (turn.Effect, error) {
			_, e, err := d.parts.Speech.Stopping(ctx, session, t.msg.Caller)
			return e, err
		})
	}
	d.report(ctx, err, "stop what is being spoken")
}

// resumed is the update of a lane whose turn goes on. What arrived while the turn waited for a person does not overtake
// it afterwards.
func (d *Dispatcher) resumed(lane *bot.Lane) bot.LaneUpdate {
	u := bot.LaneUpdate{Session: lane.Session, State: ptr(bot.Running)}
	if d.busy(lane.Caller) == Interrupt && lane.State == bot.Parked {
		u.Since = new(d.parts.Now())
	}
	return u
}

// keepLeases extends the leases of the turns in progress, and finds turns that another replica was asked to stop.
func (d *Dispatcher) keepLeases(ctx context.Context) {
	leases, stops := time.NewTicker(d.opts.Lease/3), time.NewTicker(d.opts.Sweep)
	defer leases.Stop()
	defer stops.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-leases.C:
			for _, h := range d.holders() {
				d.keep(ctx, h)
			}
		case <-stops.C:
			d.heed(ctx, d.holders())
		}
	}
}

type holder struct {
	lease  bot.Lease
	turn   string
	cancel context.CancelCauseFunc
}

func (d *Dispatcher) holders() []holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []holder
	for _, j := range d.jobs {
		if j.cancel != nil && j.held {
			list = append(list, holder{j.lease, j.turn, j.cancel})
		}
	}
	return list
}

func (d *Dispatcher) keep(ctx context.Context, h holder) {
	until := d.parts.Now().Add(d.opts.Lease)
	_, err := d.parts.Store.Apply(ctx, &bot.Change{
		Lease: &h.lease, Lanes: []bot.LaneUpdate{{Session: h.lease.Session, Until: &until}},
	})
	if errors.Is(err, bot.ErrLost) {
		h.cancel(bot.ErrLost)
		return
	}
	d.report(ctx, err, "extend a lease")
}

// heedOne cancels a turn that was asked to stop, with the cause that the store tells.
func (d *Dispatcher) heedOne(ctx context.Context, h holder) {
	lane, err := d.parts.Store.Lane(ctx, h.lease.Session)
	if err == nil && lane.Turn == h.turn {
		var waiting []bot.Arrival
		if waiting, err = d.parts.Store.Next(ctx, h.lease.Session, lookAhead); err == nil && isStopRequested(&lane) {
			h.cancel(d.cause(ctx, &lane, waiting, true))
		}
	}
	d.report(ctx, err, "look why a turn is to be stopped")
}

// heed ends the turns that another replica was asked to stop.
func (d *Dispatcher) heed(ctx context.Context, running []holder) {
	if len(running) == 0 {
		return
	}
	stops, err := d.parts.Store.Stops(ctx, d.opts.Owner)
	if err != nil {
		d.report(ctx, err, "look for turns to stop")
		return
	}
	for _, s := range stops {
		for _, h := range running {
			if h.lease.Session == s.Session && h.turn == s.Turn {
				d.heedOne(ctx, h)
			}
		}
	}
}
