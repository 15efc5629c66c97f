package dispatch

// A worker does the next thing that a session needs.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// lookAhead is how many waiting arrivals of a session are read at once.
const lookAhead = 64

// lookAtSession does the next thing that a session needs: it begins a turn, resumes one, or says that a message waits.
// It reports whether there may be more to do.
func (d *Dispatcher) lookAtSession(ctx context.Context, session bot.SessionKey, j *job) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	return d.guarded(ctx, session, j, func(arrival **bot.Arrival) bool {
		lane, err := d.laneOf(ctx, session)
		if err != nil {
			d.retryLater(ctx, session, err, "read a lane")
			return false
		}
		next, err := d.parts.Store.Next(ctx, session, lookAhead)
		if err != nil {
			d.retryLater(ctx, session, err, "read the inbox")
			return false
		}
		if lane.Turn != "" {
			return d.goOn(ctx, lane, next, j, arrival)
		}
		d.mu.Lock()
		delete(d.decided, session)
		delete(d.leaving, session)
		if len(next) == 0 {
			delete(d.line.over, session)
		}
		d.mu.Unlock()
		if len(next) == 0 {
			return false
		}
		j.alone, *arrival = len(next) == 1, &next[0]
		return d.beginNext(ctx, lane, next, j)
	})
}

// guarded works on a session. A panic counts as a failed attempt at the arrival that work has set.
func (d *Dispatcher) guarded(
	ctx context.Context, session bot.SessionKey, j *job, work func(arrival **bot.Arrival) bool,
) (more bool) {
	var arrival *bot.Arrival
	defer func() {
		p := recover()
		d.mu.Lock()
		j.cancel, j.held = nil, false
		d.mu.Unlock()
		if p == nil {
			return
		}
		d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Str("session", string(session)).
			Msg("worker panicked")
		if more = false; arrival != nil && arrival.Seq != 0 {
			more = d.countFailure(context.WithoutCancel(ctx), session, arrival, poison{fmt.Errorf("panic: %v", p)})
		}
	}()
	return work(&arrival)
}

// retryLater logs a failure of the store and schedules the session for the next sweep.
func (d *Dispatcher) retryLater(ctx context.Context, session bot.SessionKey, err error, what string) {
	d.report(ctx, err, what)
	d.later(session)
}

// goOn handles a session with a turn in progress.
func (d *Dispatcher) goOn(ctx context.Context, lane bot.Lane, next []bot.Arrival, j *job, arrival **bot.Arrival) bool {
	if lane.Owner != "" && lane.Owner != d.opts.Owner && lane.Until.After(d.parts.Now()) {
		d.behindTurn(&lane, next)
		d.decidedLater(lane.Session)
		return false // another replica works on it
	}
	own := func(a bot.Arrival) bool { return a.Seq == lane.Arrival }
	i := slices.IndexFunc(next, own)
	if i < 0 && len(next) == lookAhead { // after a move, older messages may be waiting before it
		var err error
		if next, err = d.parts.Store.Next(ctx, lane.Session, allLanes); err != nil {
			d.retryLater(ctx, lane.Session, err, "read the inbox")
			return false
		}
		i = slices.IndexFunc(next, own)
	}
	if i < 0 {
		return d.endOrphan(ctx, &lane)
	}
	*arrival = &next[i]
	d.behindTurn(&lane, next)
	if !d.mayResume(ctx, lane, next) {
		return false
	}
	return d.resumeTurn(ctx, lane, *arrival, j)
}

func isIdle(session bot.SessionKey) bot.LaneUpdate {
	return bot.LaneUpdate{
		Session: session, State: ptr(bot.Idle), Turn: new(""), Arrival: new(int64(0)), Stop: new(""),
		Live: new(int64(0)), Notice: new(""),
		Failing: &zeroTime, NotBefore: &zeroTime, Caller: new(""), Release: true,
	}
}

// mayResume reports whether a turn in progress can continue now. If a parked turn cannot, a person is told once that a
// message waits behind it.
func (d *Dispatcher) mayResume(ctx context.Context, lane bot.Lane, waiting []bot.Arrival) bool {
	if isStopRequested(&lane) || lane.State == bot.Running || d.interrupted(ctx, &lane, waiting) != nil {
		return true
	}
	if lane.State == bot.Waiting {
		return !lane.NotBefore.After(d.parts.Now())
	}
	if lane.State != bot.Parked {
		return true
	}
	d.mu.Lock()
	decided := d.decided[lane.Session]
	d.mu.Unlock()
	if decided {
		return true
	}
	open, err := d.parts.Store.OpenApprovals(ctx, lane.Session)
	if err != nil {
		d.retryLater(ctx, lane.Session, err, "read approvals")
		return false
	}
	if len(open) == 0 {
		return true
	}
	if lane.Notice != lane.Turn {
		d.sayBehind(ctx, lane, waiting)
	}
	return false
}

// sayBehind tells the first person whose message waits behind a decision.
func (d *Dispatcher) sayBehind(ctx context.Context, lane bot.Lane, waiting []bot.Arrival) {
	i := slices.IndexFunc(waiting, func(a bot.Arrival) bool { return a.Seq != lane.Arrival })
	if i < 0 {
		return
	}
	msg, err := d.decodeArrival(&waiting[i])
	if err != nil {
		return
	}
	relocateMessage(&msg, waiting[i].Session)
	row := d.reply(&msg, bot.Notice, d.parts.Words.Behind(msg.Language), "behind/"+lane.Turn)
	row.Session, row.Turn = lane.Session, lane.Turn
	change := &bot.Change{
		Lanes: []bot.LaneUpdate{{Session: lane.Session, Notice: new(lane.Turn)}}, Send: []bot.Row{row},
	}
	if err = d.againCards(ctx, lane.Session, change); err == nil {
		_, err = d.parts.Store.Apply(ctx, change)
	}
	if err != nil {
		d.retryLater(ctx, lane.Session, err, "say that a message waits")
		return
	}
	d.parts.Outbox.Wake(msg.Place)
}

// againCards sends those cards of open questions again whose delivery was given up: nobody can decide a question that
// was never shown.
func (d *Dispatcher) againCards(ctx context.Context, session bot.SessionKey, change *bot.Change) error {
	open, err := d.parts.Store.OpenApprovals(ctx, session)
	for i := range open {
		if open[i].Row != 0 {
			change.Rows = append(change.Rows, bot.RowUpdate{
				ID: open[i].Row, From: []bot.RowState{bot.Unknown, bot.Dead}, To: bot.Pending,
			})
		}
	}
	return err
}

// turnID returns the id of the turn that an arrival begins. It is the same after every restart.
func (d *Dispatcher) turnID(a *bot.Arrival) string {
	return bot.TurnID(a.Channel, a.Bot, a.ID)
}

// requestID returns the id that a person may quote to the operator. The log has it next to the turn.
func requestID(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return hex.EncodeToString(sum[:2])
}

// beginNext handles the next message of an idle session.
func (d *Dispatcher) beginNext(ctx context.Context, lane bot.Lane, waiting []bot.Arrival, j *job) bool {
	a := &waiting[0]
	t, err := d.task(ctx, a)
	if err != nil {
		return d.countFailure(ctx, lane.Session, a, err)
	}
	if t.msg.Kind == bot.Edited {
		return d.editedLate(ctx, t)
	}
	if !t.verdict.OK && d.runsOf(a) != nil {
		return d.mayLookAgain(ctx, a, d.refuseRun(ctx, a))
	}
	if !t.verdict.OK {
		return d.mayLookAgain(ctx, a, d.refuseSender(ctx, a, t.msg, t.verdict))
	}
	if t.msg.Command != "" {
		return d.command(ctx, lane, t)
	}
	if empty(t.msg) {
		return d.mayLookAgain(ctx, a, d.storeEffectInLane(ctx, a, func() (turn.Effect, error) {
			row := d.reply(t.msg, bot.Reply, d.parts.Words.Nothing(t.msg.Language), "")
			return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}, nil
		}))
	}
	g := d.gatherMessages(waiting, *t.msg)
	if !g.due.IsZero() {
		d.pauseSession(lane.Session, g.due)
		return false
	}
	if !d.countForPerson(lane.Session, t.msg.Person, j) {
		return false
	}
	t.msg, t.rest, t.waiting = &g.msg, g.rest, waiting
	j.alone = len(waiting) == 1+len(t.rest)
	return d.beginTurn(ctx, lane, t, j, nil)
}

// mayLookAgain converts the error of a finished arrival to whether the session should be looked at again.
func (d *Dispatcher) mayLookAgain(ctx context.Context, a *bot.Arrival, err error) bool {
	if err != nil {
		return d.countFailure(ctx, a.Session, a, err)
	}
	return true
}

// command runs a command that waits its turn in the session.
func (d *Dispatcher) command(ctx context.Context, lane bot.Lane, t *task) bool {
	call := &turn.Call{Message: t.msg, Session: lane.Session, Admin: t.verdict.Admin, Allowed: t.verdict.Allowed}
	return d.mayLookAgain(ctx, t.arrival, d.storeEffectInLane(ctx, t.arrival, func() (turn.Effect, error) {
		e, err := d.parts.Commands.Run(ctx, call)
		update := bot.LaneUpdate{Session: lane.Session, Stop: new("")}
		if lane.Place.Channel == "" {
			update.Place = &t.msg.Place
		}
		e.Change.Lanes = append(e.Change.Lanes, update)
		return e, err
	}))
}

// claimFailed logs a failed claim, unless it was a lost race: then somebody else does the work.
func (d *Dispatcher) claimFailed(ctx context.Context, session bot.SessionKey, err error) {
	if !isTaken(err) {
		d.retryLater(ctx, session, err, "take a lane")
	}
}

// newsForModel returns what the model has to be told besides the message.
func (d *Dispatcher) newsForModel(ctx context.Context, session bot.SessionKey) (turn.News, error) {
	if d.parts.News == nil {
		return turn.News{}, nil
	}
	// one that is remembered and was another process's meanwhile is refused, and begins again
	_, known := d.kept.lane(session)
	return d.parts.News(ctx, session, d.opts.Shared && !known)
}

// talkForModel returns what people of a group have said to each other since its conversation last read it. A task that
// is due, a hook, and another bot, work with their own words alone.
func (d *Dispatcher) talkForModel(ctx context.Context, session bot.SessionKey, t *task) (turn.Talk, error) {
	if d.parts.Talk == nil || d.runsOf(t.arrival) != nil || t.msg.FromBot {
		return turn.Talk{}, nil
	}
	return d.parts.Talk.Since(ctx, t.msg, session)
}

// resumeTurn continues a turn that was parked, waiting, or left by a process that died.
func (d *Dispatcher) resumeTurn(ctx context.Context, lane bot.Lane, a *bot.Arrival, j *job) bool {
	t, err := d.task(ctx, a)
	if err != nil {
		return d.countFailure(ctx, lane.Session, a, err)
	}
	if !d.countForPerson(lane.Session, t.msg.Person, j) {
		return false
	}
	applied, err := d.parts.Store.Apply(ctx, &bot.Change{
		Claim: d.laneClaim(&lane, lane.Place), Lanes: []bot.LaneUpdate{d.resumed(&lane)},
	})
	if err != nil {
		d.claimFailed(ctx, lane.Session, err)
		return false
	}
	d.mu.Lock()
	delete(d.decided, lane.Session) // from here on, a decision concerns a running turn, which looks again when it parks
	d.mu.Unlock()
	held, err := d.parts.Store.Lane(ctx, lane.Session)
	if err != nil {
		d.retryLater(ctx, lane.Session, err, "read a lane")
		return false
	}
	// It was ended by somebody else before the lane was claimed.
	if held.Fence = applied.Fence; held.Turn != lane.Turn || held.Arrival != lane.Arrival {
		_, err := d.parts.Store.Apply(ctx, &bot.Change{
			Lease: &bot.Lease{Session: lane.Session, Fence: applied.Fence},
			Lanes: []bot.LaneUpdate{{Session: lane.Session, State: ptr(bot.Idle), Release: true}},
		})
		return d.settledLane(ctx, lane.Session, err)
	}
	return d.goOnWith(ctx, &held, t, j)
}

func (d *Dispatcher) settledLane(ctx context.Context, session bot.SessionKey, err error) bool {
	if err != nil {
		d.claimFailed(ctx, session, err)
		return false
	}
	return true
}
