package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// opening is the beginning of a turn while it is being stored.
type opening struct {
	change *bot.Change
	entry  journal.Entry // the first entry of the turn
	task   *task
	first  *first // the message, if this Change stores it too; nil = it was stored before
	gate   *gate
	done   chan struct{}
	hide   func() // stops showing the turn
	// contended: other processes may be beginning the same turn, because the message was stored before and they see it
	// too: it waited for others, behind a turn, or until its files were read. The model is called only when this one has
	// the turn.
	contended bool
	err       error // why the turn has not begun; final once done is closed
}

// wait waits until the outcome of the commit is known.
func (o *opening) wait() error {
	<-o.done
	return o.err
}

// gate drops what a turn would show until the turn is stored.
type gate struct {
	mu   sync.Mutex
	sink agent.Sink // nil = closed
	held []func(agent.Sink)
}

// Emit implements agent.Sink.
func (g *gate) Emit(ctx context.Context, e agent.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sink == nil {
		g.held = append(g.held, func(s agent.Sink) { s.Emit(ctx, e) })
		return
	}
	g.sink.Emit(ctx, e)
}

func (g *gate) open(sink agent.Sink) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, emit := range g.held {
		emit(sink)
	}
	g.sink, g.held = sink, nil
}

// beginTurn charges a turn and begins it. One Change contains the charge, the entry of the message, the claim of the
// lane and, if it is new, the message itself. The model is called while that Change is being committed. Until the
// commit nothing is shown, no tool runs and nothing is written; if the Change is refused, the call of the model is
// cancelled.
func (d *Dispatcher) beginTurn(ctx context.Context, lane bot.Lane, t *task, j *job, f *first) bool {
	a := t.arrival
	admission, more, ok := d.charge(ctx, &lane, t, f)
	if !ok {
		return more
	}
	if more, ok := d.receive(ctx, &lane, t, j, admission.Charges); !ok {
		return more
	}
	news, err := d.news(ctx, lane.Session)
	if err != nil && f == nil { // a retry uses the same charge
		d.failed(ctx, lane.Session, err, "read the news of a session")
	}
	if err != nil {
		return false
	}
	d.remind(ctx, &lane, t)
	o := d.opening(&lane, t, news, admission)
	o.contended = d.opts.Shared && (f == nil || len(t.rest) > 0 || d.awaits(t.msg) > 0)
	tail, known := d.kept.tail(&lane)
	if o.first = f; f != nil {
		o.change.Claim.Arrives, o.change.Arrive = true, []bot.Arrival{*a}
	} else {
		o.change.Claim.Arrival, o.change.Lanes[0].Arrival = a.Seq, &a.Seq
	}
	lane.State, lane.Turn, lane.Since = bot.Running, o.entry.Turn, o.entry.At
	lane.Last++
	lane.Fence++
	lane.Caller, lane.Live = t.msg.Caller, 0
	lane.Owner, lane.Arrival, lane.Failing, lane.Place = d.opts.Owner, a.Seq, zeroTime, o.change.Claim.Place
	lane.Workspace = o.change.Claim.Workspace
	w := d.newWork(&lane, t)
	defer w.close(ctx)
	w.begins(o, j.alone)
	w.crowd = d.crowdOf(ctx, t, lane.Session, f == nil)
	if w.journal.known = known; known {
		w.journal.tail = tail
		w.journal.learn(o.entry)
	}
	moving, cancel := context.WithCancelCause(w.logged(ctx))
	defer cancel(nil)
	if cause := d.interrupted(ctx, &lane, t.waiting); cause != nil {
		cancel(cause)
	}
	if f != nil && !f.take() { // it took too long to come here
		return false
	}
	began := time.Now()
	out, err := w.open(ctx, moving, cancel, j, o)
	if o.err == nil {
		return w.conclude(moving, out, err, time.Since(began))
	}
	return d.notBegun(ctx, o, a, admission, known)
}

// begins makes the run that of a turn whose beginning is being stored.
func (w *work) begins(o *opening, alone bool) {
	w.fresh, w.alone, w.journal.opening = true, alone, o
	// A task that is due is not somebody who comes back.
	if resumed := w.d.parts.Resumed; resumed != nil && w.arrival.Source != bot.FromSchedule {
		w.journal.resumed = func(before []journal.Entry) { resumed(w.msg, w.lane.Session, before, o.wait) }
	}
}

// charge asks whether the turn may begin. If it may not, the person is told, provided that the message is stored. more
// reports whether the session should be looked at again in that case.
func (d *Dispatcher) charge(
	ctx context.Context, lane *bot.Lane, t *task, f *first,
) (admission turn.Admission, more, ok bool) {
	a, msg := t.arrival, t.msg
	admission, err := d.parts.Meter.Admit(ctx, msg, d.turnID(a))
	switch {
	case err == nil && admission.Refusal == "":
		return admission, false, true
	case f != nil: // the same refusal is found once the message is stored
		return admission, false, false
	case err != nil:
		return admission, d.trouble(ctx, lane.Session, a, fmt.Errorf("charge a turn: %w", err)), false
	}
	d.observe(Observation{What: "turn", Kind: "quota", Turn: d.turnID(a)})
	defer d.runEnded(a)
	return admission, d.settled(ctx, a, d.effect(ctx, a, func() (turn.Effect, error) {
		key := admission.Once
		if key != "" {
			key = "quota/" + key
		}
		row := d.reply(msg, bot.Reply, admission.Refusal, key)
		if msg.Place.Group {
			row.Content.Only = msg.Person
		}
		e := turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}
		d.runEnds(a, &e.Change, runUnpaid)
		return e, nil
	})), false
}

// opening builds the Change that begins a turn.
func (d *Dispatcher) opening(lane *bot.Lane, t *task, news turn.News, admission turn.Admission) *opening {
	msg, turn, now := t.msg, d.turnID(t.arrival), d.parts.Now()
	o := &opening{task: t, gate: &gate{}, done: make(chan struct{}), hide: func() {}, entry: d.entry(t, turn, news, now)}
	o.change = &bot.Change{
		Claim: d.claim(lane, msg.Place),
		Lanes: []bot.LaneUpdate{{
			Session: lane.Session, State: ptr(bot.Running), Turn: &turn, Since: &now, Stop: new(""),
			Live: new(int64(0)), Caller: &msg.Caller,
		}},
		Append:  &bot.Append{Session: lane.Session, After: lane.Last, Entries: []journal.Entry{o.entry}},
		Charges: admission.Charges,
		Facts:   news.Told,
	}
	o.entry.N = lane.Last + 1
	o.change.Done = t.rest
	switch {
	case msg.Place.Guest():
		d.answerFirst(o, msg)
	case msg.Place.Ordinary():
		o.change.Send = d.besides(t, turn, admission)
	}
	return o
}

// besides returns what a person is told at the beginning of a turn.
func (d *Dispatcher) besides(t *task, turn string, admission turn.Admission) []bot.Row {
	var rows []bot.Row
	if admission.Notice != "" {
		rows = append(rows, d.reply(t.msg, bot.Notice, admission.Notice, "quota/"+admission.NoticeKey))
	}
	if t.received != nil {
		for i, notice := range t.received.Notices {
			rows = append(rows, d.reply(t.msg, bot.Reply, notice, fmt.Sprintf("file/%s/%d", turn, i)))
		}
	}
	return rows
}

// open runs the Runner with the context moving while the beginning of the turn is being stored. It returns when both
// have finished.
func (w *work) open(
	ctx, moving context.Context, cancel context.CancelCauseFunc, j *job, o *opening,
) (agent.Outcome, error) {
	w.d.mu.Lock()
	j.cancel, j.turn, j.followed, j.beginning = cancel, w.lane.Turn, false, o.done
	w.d.mu.Unlock()
	w.d.wg.Go(func() {
		defer close(o.done)
		if o.err = w.store(ctx, moving, j, o); o.err != nil {
			cancel(o.err)
		}
		if o.first != nil {
			o.first.stored <- o.err
		}
	})
	defer func() {
		<-o.done
		o.hide()
	}()
	if o.first != nil && !o.first.fresh || o.contended { // it may have been answered long ago, or begins elsewhere too
		if err := o.wait(); err != nil {
			return agent.Outcome{}, err
		}
	}
	return w.d.parts.Runner.Run(moving, w.turn, w.journal, o.gate)
}

// store makes the beginning of a turn durable, then opens the gate.
func (w *work) store(ctx, moving context.Context, j *job, o *opening) (err error) {
	d := w.d
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).
				Str("session", string(w.lane.Session)).Msg("beginning of a turn panicked")
			err = poison{fmt.Errorf("panic: %v", p)}
		}
	}()
	applied, err := d.parts.Store.Apply(ctx, o.change)
	if err != nil {
		return fmt.Errorf("begin a turn: %w", err)
	}
	if o.first != nil {
		w.arrival.Seq = applied.Seqs[0]
		w.lane.Arrival = w.arrival.Seq
	}
	if o.change.PlaceholderOf != "" {
		w.live = applied.Rows[0]
	}
	d.mu.Lock()
	j.lease, j.held = w.lease, true
	broken := j.broken
	if broken {
		d.breaks[w.lane.Session] = true
	}
	d.mu.Unlock()
	if broken {
		d.nudge(d.express)
	}
	d.merged(w.lane.Session, o.task)
	if len(applied.Rows) > 0 {
		d.parts.Outbox.Wake(w.msg.Place)
	}
	d.observe(Observation{What: "queue", Duration: o.entry.At.Sub(w.arrival.At), Turn: o.entry.Turn})
	sink, hide := w.watch(moving)
	o.hide = hide
	o.gate.open(sink)
	return nil
}

// notBegun decides what to do after the beginning of a turn was refused.
func (d *Dispatcher) notBegun(
	ctx context.Context, o *opening, a *bot.Arrival, admission turn.Admission, wasKept bool,
) bool {
	session := o.change.Claim.Session
	d.kept.drop(session)
	if wasKept && taken(o.err) {
		d.kept.mistrust()
	}
	switch {
	case o.first != nil: // it is stored as an ordinary message and begins again
		return false
	case hopeless(o.err): // it can never begin
		d.report(ctx, d.parts.Meter.Undo(context.WithoutCancel(ctx), admission.Charges), "give a charge back")
		return d.trouble(ctx, session, a, o.err)
	case wasKept && taken(o.err): // what was remembered of the session is out of date
		return true
	default: // either another worker has it, or it is retried with the same charge
		d.claimFailed(ctx, session, o.err)
		return false
	}
}

var _ agent.Pending = (*laneJournal)(nil)
