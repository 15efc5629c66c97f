package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// commitTime limits a Change that must not be abandoned because its turn was cancelled.
const commitTime = 15 * time.Second

const (
	commitPause = 200 * time.Millisecond // before the second attempt to store a result; later pauses are longer
	faultWait   = 5 * time.Second        // before the retry of a turn that failed because of an internal error
)

var zeroTime time.Time

// goOnWith runs a turn whose lane is held, and commits the outcome.
func (d *Dispatcher) goOnWith(ctx context.Context, lane *bot.Lane, t *task, j *job) bool {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &work{d: d, purse: d.parts.Meter.Open(t.msg, lane.Turn)}
	d.readManner(ctx, lane.Session, t)
	d.fillWork(w, lane, t)
	defer w.endRun(ctx)
	d.mu.Lock()
	j.cancel, j.lease, j.turn, j.held = cancel, w.lease, lane.Turn, true
	d.held(j)
	d.mu.Unlock()
	// Whatever arrived since the lane was read is in the store.
	dropped, others, cause := d.isOvertaken(ctx, lane)
	w.others, w.quote = others, excerptOfMessage(t.first)
	if dropped {
		return d.endOrphan(ctx, lane)
	}
	if cause == nil && !t.verdict.OK {
		cause = agent.ErrStopped
	}
	w.journal.inbox.look = true
	if cause != nil && !errors.Is(cause, agent.ErrRevised) { // a changed message is read by the run
		d.mu.Lock()
		cause = d.stopCause(lane.Session, lane.Turn, cause)
		d.mu.Unlock()
		cancel(cause)
	}
	return w.run(w.withLogger(ctx))
}

// run advances the turn, whose lane is held, and commits the outcome. It reports whether the session may have more to
// do.
func (w *work) run(ctx context.Context) bool {
	began := time.Now()
	sink, hide := w.watch(ctx)
	out, err := func() (agent.Outcome, error) {
		defer hide()
		return w.d.parts.Runner.Run(ctx, w.turn, w.journal, sink)
	}()
	return w.conclude(ctx, out, err, time.Since(began))
}

// fillWork prepares the run of a turn whose lane is held or will be.
func (d *Dispatcher) fillWork(w *work, lane *bot.Lane, t *task) {
	w.lane, w.arrival, w.msg, w.live = lane, t.arrival, t.msg, lane.Live
	w.lease, w.turn = bot.Lease{Session: lane.Session, Fence: lane.Fence}, d.turnOf(lane, t)
	w.journal = &laneJournal{
		store: d.parts.Store, lease: w.lease, last: lane.Last, notices: w.notices, purse: w.purse,
		wake: func() { d.parts.Outbox.Wake(w.msg.Place) },
	}
	w.journal.inbox = &turnInbox{work: w}
	w.journal.weigh = func(history int64) { d.recordHistorySize(lane.Session, history) }
	w.journal.tail, w.journal.known = d.kept.tail(lane)
}

// endRun ends the run. What was spent on work that could not be stored is stored by itself: the money is gone.
func (w *work) endRun(ctx context.Context) {
	w.purse.Close()
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	w.d.report(kept, w.purse.Flush(kept), "store what was spent")
}

// withLogger returns a context whose logger names the turn.
func (w *work) withLogger(ctx context.Context) context.Context {
	with := w.d.parts.Log.With().Str("session", string(w.lane.Session)).Str("turn", w.lane.Turn).
		Str("caller", w.msg.Caller).Str("request", w.turn.Request)
	if trace := w.d.parts.Trace; trace != nil {
		var id string
		ctx, id = trace(ctx, w.lane.Turn)
		with = with.Str("trace_id", id)
	}
	log := with.Logger()
	return log.WithContext(ctx)
}

// conclude commits the outcome of a run, or leaves the turn for later. It reports whether the session may have more to
// do.
func (w *work) conclude(ctx context.Context, out agent.Outcome, err error, took time.Duration) bool {
	if err != nil {
		return w.leaveUnfinished(ctx, err)
	}
	w.d.observe(Observation{What: "turn", Kind: string(out.Kind), Duration: took, Turn: w.turn.ID})
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	w.lookAround(kept, took)
	w.d.untold(w.lane.Session)
	if w.living != nil { // "typing" must not appear after the answer
		<-w.living
	}
	if err := w.commitOutcome(kept, out); err != nil {
		return w.leaveUnfinished(kept, err)
	}
	w.d.parts.Outbox.Wake(w.msg.Place)
	w.over()
	return !w.alone
}

// isOvertaken reports whether the message of a turn was dropped, whether other messages wait in its session, or with
// what the turn has to be cancelled (nil = nothing), before there was anything here to cancel.
func (d *Dispatcher) isOvertaken(ctx context.Context, lane *bot.Lane) (dropped, others bool, cause error) {
	stop := false
	if now, err := d.parts.Store.Lane(ctx, lane.Session); err == nil && isStopRequested(&now) && now.Turn == lane.Turn {
		stop = true
	}
	waiting, err := d.parts.Store.Next(ctx, lane.Session, lookAhead)
	if err != nil {
		if stop {
			return false, false, agent.ErrStopped
		}
		return false, false, nil
	}
	own := slices.ContainsFunc(waiting, func(a bot.Arrival) bool { return a.Seq == lane.Arrival })
	if !own && len(waiting) < lookAhead {
		return true, false, nil
	}
	return false, len(waiting) > 1, d.cause(ctx, lane, waiting, stop)
}

// leaveUnfinished leaves a turn for later: for another worker, the next process or the next sweep.
func (w *work) leaveUnfinished(ctx context.Context, err error) bool {
	log := zerolog.Ctx(ctx)
	revised := errors.Is(context.Cause(ctx), agent.ErrRevised)
	switch {
	case isTaken(err), errors.Is(context.Cause(ctx), bot.ErrLost):
		log.Info().Err(err).Msg("turn taken over by another worker")
		return false
	case revised:
		log.Info().Msg("the message was changed; its turn goes on with it")
	case errors.Is(context.Cause(ctx), context.Canceled):
		log.Info().Msg("turn interrupted; the next process resumes it")
	default:
		return w.keepFaulty(ctx, err)
	}
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	_, err = w.d.parts.Store.Apply(kept, &bot.Change{
		Lease: &w.lease, Lanes: []bot.LaneUpdate{{Session: w.lease.Session, Release: true}},
	})
	if err != nil && !isTaken(err) {
		log.Error().Err(err).Msg("lane not given back")
	}
	return revised
}

// keepFaulty keeps a turn that failed because of an internal error for another attempt, and gives it up in the end.
func (w *work) keepFaulty(ctx context.Context, cause error) bool {
	log := zerolog.Ctx(ctx)
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	since := w.failingSince()
	failing := w.d.parts.Now().Sub(since)
	if failing >= w.d.opts.GiveUp || hopeless(cause) {
		log.Error().Err(cause).Msg("turn given up after an internal error")
		entry := journal.Entry{
			Turn: w.turn.ID, Kind: journal.EndEntry, At: w.d.parts.Now(), Reason: journal.ReasonInternal,
		}
		err := w.commitOutcome(kept, agent.Outcome{
			Kind: agent.Ended, Reason: journal.ReasonInternal, Entries: []journal.Entry{entry},
		})
		if err == nil {
			w.d.parts.Outbox.Wake(w.msg.Place)
			return true
		}
		cause = err
	}
	log.Error().Err(cause).Msg("turn interrupted by an internal error; it is retried")
	due := w.d.parts.Now().Add(max(faultWait, backoffTime(failing)))
	_, err := w.d.parts.Store.Apply(kept, &bot.Change{Lease: &w.lease, Lanes: []bot.LaneUpdate{{
		Session: w.lease.Session, State: ptr(bot.Waiting), Failing: &since, NotBefore: &due, Release: true,
	}}})
	if err != nil && !isTaken(err) {
		log.Error().Err(err).Msg("lane not given back")
	}
	w.d.later(w.lease.Session) // also if the reply of the store was lost
	return false
}

// failingSince returns the time of the first failure since the turn last made progress.
func (w *work) failingSince() time.Time {
	if w.lane.Failing.IsZero() || w.journal.last > w.lane.Last {
		return w.d.parts.Now()
	}
	return w.lane.Failing
}

// work is one run of one turn.
type work struct {
	d       *Dispatcher
	lane    *bot.Lane
	arrival *bot.Arrival
	msg     *bot.Message
	lease   bot.Lease
	turn    *agent.Turn
	journal *laneJournal
	purse   turn.Budget
	fresh   bool // the turn began with this run: nobody was asked anything yet
	alone   bool // no other arrival was waiting in the session when it began

	crowd

	live   int64 // outbox row of the placeholder; used by the goroutine that shows the turn, then by the worker
	unsure bool  // the store may have a placeholder that is not known here

	living <-chan struct{} // closed when the sign that the message has come is shown; nil = it is, or there is none
	beside func()          // what follows beside the answer once it is stored
}

func (w *work) row(purpose bot.Purpose, content bot.Content, key string) bot.Row {
	row := w.d.reply(w.msg, purpose, "", key)
	content.Language = w.msg.Language
	row.Session, row.Turn, row.Content = w.lane.Session, w.turn.ID, content
	return row
}
