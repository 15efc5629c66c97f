package dispatch

// A turn begins with one Change, which charges it, claims its lane and writes its message to the journal.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// first is a message that finds its session idle: the Change that stores it also begins its turn.
type first struct {
	arrival *bot.Arrival
	msg     bot.Message
	stored  chan bool // receives whether message and turn are stored; if not, the message is stored without a turn
	begun   bool      // what stored received, for Accept
	// One of the two takes the message: the worker, whose Change stores it with its turn, or Accept, which stores it
	// without. Both at once would be two Changes, of which one is refused and begins again: a store that is late
	// because it has too much to do would get more.
	taken atomic.Bool
}

// firstTime is how long Accept waits until the Change that begins a turn is on its way to the store. After that the
// message is stored without its turn. A Change that is on its way is waited for.
const firstTime = 500 * time.Millisecond

// take claims the message for the Change that stores it. It returns false if the other side was faster.
func (f *first) take() bool { return f.taken.CompareAndSwap(false, true) }

// refuse reports that the message has to be stored without its turn, unless it is stored already.
func (f *first) refuse() {
	select {
	case f.stored <- false:
	default:
	}
}

// awaitFirsts waits until it is known for which messages the turn has begun, or will not begin before the message is
// stored.
func awaitFirsts(batch []incoming) {
	timer := time.NewTimer(firstTime)
	defer timer.Stop()
	late := false
	for i := range batch {
		f := batch[i].first
		if f == nil {
			continue
		}
		if !late {
			select {
			case f.begun = <-f.stored:
				continue
			case <-timer.C:
				late = true
			}
		}
		if !f.take() {
			f.begun = <-f.stored
		}
	}
}

// beginFirsts begins the turns of messages whose sessions are idle. It does not wait: first.stored receives the outcome
// of each.
func (d *Dispatcher) beginFirsts(batch []incoming) {
	chats := map[string]int{}
	for i := range batch {
		chats[batch[i].msg.Place.ChatKey()]++
	}
	for i := range batch {
		in := &batch[i]
		// Several messages of one chat are handled in the order in which they are stored.
		if !in.plain || chats[in.msg.Place.ChatKey()] > 1 {
			continue
		}
		arrival := in.arrival
		f := &first{arrival: &arrival, msg: in.msg, stored: make(chan bool, 1)}
		if d.startFirst(arrival.Session, f) {
			in.first = f
		}
	}
}

// startFirst gives the session of a message to a worker at once. It returns false if the session is busy or queued.
func (d *Dispatcher) startFirst(session bot.SessionKey, f *first) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turns == nil || d.paused[session] != nil || len(d.queued) > 0 || len(d.back) > 2*d.limit ||
		len(d.jobs) >= d.opts.Concurrency || d.jobs[session] != nil || !d.hasMemory() {
		return false
	}
	party := cmp.Or(f.msg.Person, partyOf(session))
	if !d.queue.Begin(party) {
		return false
	}
	ctx, j := d.turns, &job{alone: true, party: party, weight: d.average}
	d.weight += j.weight
	d.jobs[session] = j
	d.wg.Go(func() { d.serveFirst(ctx, session, j, f) })
	return true
}

// serveFirst is serve for a session whose message is not stored yet.
func (d *Dispatcher) serveFirst(ctx context.Context, session bot.SessionKey, j *job, f *first) {
	more := d.guarded(ctx, session, j, func(arrival **bot.Arrival) bool {
		defer f.refuse() // also after a panic
		patience, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		if !d.stepBack(patience, j) {
			return false
		}
		return d.lookFirst(ctx, session, j, f, arrival)
	})
	d.release(session, j, more)
}

// lookFirst begins the turn of a message, unless anything requires that the message is stored first.
func (d *Dispatcher) lookFirst(
	ctx context.Context, session bot.SessionKey, j *job, f *first, arrival **bot.Arrival,
) bool {
	t, err := d.taskOf(ctx, f.arrival, f.msg)
	if err != nil || !t.verdict.OK {
		return false
	}
	if empty(t.msg) {
		return false
	}
	lane, err := d.laneOf(ctx, session)
	if err != nil {
		return false
	}
	if lane.Turn != "" || !d.countForPerson(session, t.msg.Person, j) {
		return false
	}
	*arrival = f.arrival // it has no number until it is stored
	return d.beginTurn(ctx, lane, t, j, f)
}

// beginning is the Change that begins a turn.
type beginning struct {
	change   *bot.Change
	entry    journal.Entry // the first entry of the turn
	admitted *bot.Ledger   // what the Change is held to
}

// beginTurn charges a turn and begins it. One Change contains the charge, the entry of the message, the claim of the
// lane and, if it is new, the message itself. Nothing is shown, no model is called and no
// tool runs before it is stored.
func (d *Dispatcher) beginTurn(ctx context.Context, lane bot.Lane, t *task, j *job, f *first) bool {
	a := t.arrival
	admission, more, ok := d.chargeTurn(ctx, &lane, t, f)
	if !ok {
		return more
	}
	// It pays for what is read before the turn begins too: that is spent even if the turn never begins.
	w := &work{d: d, purse: d.parts.Meter.Open(t.msg, d.turnID(a))}
	defer w.endRun(ctx)
	if more, ok := d.receiveFiles(ctx, &lane, t, j, w.purse, admission.Charges); !ok {
		return more
	}
	d.remindModel(ctx, &lane, t, j, w.purse)
	if !d.stepBack(ctx, j) {
		return false
	}
	news, err := d.newsForModel(ctx, lane.Session)
	if err != nil && f == nil { // a retry uses the same charge
		d.retryLater(ctx, lane.Session, err, "read the news of a session")
	}
	if err != nil {
		return false
	}
	d.readManner(ctx, lane.Session, t)
	if t.talk, err = d.talkForModel(ctx, lane.Session, t); err != nil {
		if f == nil {
			d.retryLater(ctx, lane.Session, err, "read what was said in a group")
		}
		return false
	}
	d.stopSpeech(ctx, lane.Session, t)
	b := d.beginning(&lane, t, news, admission)
	tail, known := d.kept.tail(&lane)
	_, wasKept := d.kept.lane(lane.Session)
	if f != nil {
		b.change.Claim.Arrives, b.change.Arrive = true, []bot.Arrival{*a}
	} else {
		b.change.Claim.Arrival, b.change.Lanes[0].Arrival = a.Seq, &a.Seq
	}
	lane.State, lane.Turn, lane.Since = bot.Running, b.entry.Turn, b.entry.At
	lane.Last++
	lane.Fence++
	lane.Caller, lane.Live = t.msg.Caller, 0
	lane.Owner, lane.Arrival, lane.Failing, lane.Place = d.opts.Owner, a.Seq, zeroTime, b.change.Claim.Place
	lane.Workspace = b.change.Claim.Workspace
	d.fillWork(w, &lane, t)
	w.fresh, w.alone = true, j.alone
	w.crowd = d.crowdOf(ctx, t, lane.Session, f == nil)
	w.journal.waits = map[string]bool{}
	if w.journal.known = known; known {
		w.journal.tail = tail
		w.journal.learn(b.entry)
	}
	if resumed := d.parts.Resumed; resumed != nil && !a.Source.Unsent() { // a task that is due is nobody
		w.journal.resumed = func(before []journal.Entry) { resumed(w.msg, lane.Session, before) }
	}
	moving, cancel := context.WithCancelCause(w.withLogger(ctx))
	defer cancel(nil)
	if cause := d.interrupted(ctx, &lane, t.waiting); cause != nil {
		cancel(cause)
	}
	if f != nil && !f.take() { // it took too long to come here
		return false
	}
	if err := w.storeBeginning(ctx, cancel, j, b, f); err != nil {
		return d.handleNotBegun(ctx, b, a, admission, f, wasKept, err)
	}
	d.merged(lane.Session, t)
	return w.run(moving)
}

// chargeTurn asks whether the turn may begin. If it may not, the person is told, provided that the message is stored.
// more reports whether the session should be looked at again in that case.
func (d *Dispatcher) chargeTurn(
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
		return admission, d.countFailure(ctx, lane.Session, a, fmt.Errorf("charge a turn: %w", err)), false
	}
	d.observe(Observation{What: "turn", Kind: "quota", Turn: d.turnID(a)})
	defer d.runEnded(a)
	err = d.storeEffectInLane(ctx, a, func() (turn.Effect, error) {
		key := admission.Once
		if key != "" {
			key = "quota/" + key
		}
		if msg.Hook != "" { // a program would go on calling, and whoever is told has not asked
			key = onceKey("quota/hook/"+msg.Hook, d.parts.Now(), d.opts.OnceFor)
		}
		row := d.reply(msg, bot.Reply, admission.Refusal, key)
		if msg.Place.Group {
			row.Content.Only = msg.Person
		}
		e := turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}
		d.runEnds(a, &e.Change, runUnpaid)
		return e, nil
	})
	// What is said once is followed by a sign on each message.
	if err == nil && admission.Once != "" && msg.Hook == "" && msg.Message != "" && d.parts.Signs != nil {
		d.parts.Signs.Spent(lane.Session, msg.Place, msg.Message)
	}
	return admission, d.mayLookAgain(ctx, a, err), false
}

// beginning builds the Change that begins a turn.
func (d *Dispatcher) beginning(lane *bot.Lane, t *task, news turn.News, admission turn.Admission) *beginning {
	msg, turn, now := t.msg, d.turnID(t.arrival), d.parts.Now()
	b := &beginning{entry: d.firstEntry(t, turn, news, now), admitted: admission.Ledger}
	b.change = &bot.Change{
		Claim: d.laneClaim(lane, msg.Place),
		Lanes: []bot.LaneUpdate{{
			Session: lane.Session, State: ptr(bot.Running), Turn: &turn, Since: &now, Stop: new(""),
			Live: new(int64(0)), Caller: &msg.Caller,
		}},
		Append:  &bot.Append{Session: lane.Session, After: lane.Last, Entries: []journal.Entry{b.entry}},
		Charges: admission.Charges,
		Facts:   slices.Concat(news.Told, t.manner.Facts, t.talk.Told),
	}
	b.entry.N = lane.Last + 1
	b.change.Done = t.rest
	switch {
	case msg.Place.Guest():
		d.answerFirst(b, msg)
	case msg.Place.Ordinary():
		b.change.Send = d.noticesAtBegin(t, turn, admission)
	}
	return b
}

// noticesAtBegin returns what a person is told at the beginning of a turn.
func (d *Dispatcher) noticesAtBegin(t *task, turn string, admission turn.Admission) []bot.Row {
	var rows []bot.Row
	if runs := d.runsOf(t.arrival); runs != nil && t.msg.Hook != "" {
		text := d.parts.Words.HookCalled(t.msg.Language, t.msg.Hook)
		row := d.reply(t.msg, bot.Reply, text, runs.Heading(t.arrival.ID))
		row.Session, row.Turn, row.Content.Entities = t.arrival.Session, turn, render.Inert(text)
		rows = append(rows, row)
	}
	if admission.Notice != "" {
		rows = append(rows, d.reply(t.msg, bot.Notice, admission.Notice, "quota/"+admission.NoticeKey))
	}
	if notice := t.manner.Notice; notice != nil {
		rows = append(rows, d.reply(t.msg, bot.Reply, notice.Text, notice.Key)) // said once: the answer must not overtake it
	}
	if t.received != nil {
		for i, notice := range t.received.Notices {
			rows = append(rows, d.reply(t.msg, bot.Reply, notice, fmt.Sprintf("file/%s/%d", turn, i)))
		}
	}
	return rows
}

// storeBeginning makes the beginning of a turn durable. From then on the lane is held.
func (w *work) storeBeginning(
	ctx context.Context, cancel context.CancelCauseFunc, j *job, b *beginning, f *first,
) error {
	d := w.d
	known := make(chan struct{})
	defer close(known)
	d.mu.Lock()
	j.cancel, j.turn, j.followed, j.beginning = cancel, w.lane.Turn, false, known
	d.mu.Unlock()
	spent := w.purse.Begin(b.admitted, string(w.lane.Session), tokensOf(&b.entry))
	spent.In(b.change)
	applied, err := d.parts.Store.Apply(ctx, b.change)
	w.purse.Stored(&spent, applied)
	if err != nil {
		return fmt.Errorf("begin a turn: %w", err)
	}
	if f != nil {
		w.arrival.Seq = applied.Seqs[0]
		w.lane.Arrival = w.arrival.Seq
		f.stored <- true
	}
	if b.change.PlaceholderOf != "" {
		w.live = applied.Rows[0]
	}
	d.mu.Lock()
	j.lease, j.held = w.lease, true
	d.held(j)
	broken := j.broken
	if broken {
		d.breaks[w.lane.Session] = true
	}
	d.mu.Unlock()
	if broken {
		d.nudge(d.express)
	}
	if len(applied.Rows) > 0 {
		d.parts.Outbox.Wake(w.msg.Place)
	}
	d.observe(Observation{What: "queue", Duration: b.entry.At.Sub(w.arrival.At), Turn: b.entry.Turn})
	return nil
}

// handleNotBegun decides what to do after the beginning of a turn was refused.
func (d *Dispatcher) handleNotBegun(
	ctx context.Context, b *beginning, a *bot.Arrival, admission turn.Admission, f *first, wasKept bool, err error,
) bool {
	session := b.change.Claim.Session
	d.kept.drop(session)
	if wasKept && isTaken(err) {
		d.kept.mistrust()
	}
	_, full := errors.AsType[*bot.NoRoom](err)
	if full {
		d.report(ctx, d.parts.Meter.Undo(context.WithoutCancel(ctx), admission.Charges), "give a charge back")
	}
	switch {
	case f != nil: // it is stored as an ordinary message and begins again
		return false
	case full: // the admission is refused now
		return true
	case hopeless(err): // it can never begin
		d.report(ctx, d.parts.Meter.Undo(context.WithoutCancel(ctx), admission.Charges), "give a charge back")
		return d.countFailure(ctx, session, a, err)
	case wasKept && isTaken(err): // what was remembered of the session is out of date
		return true
	default: // either another worker has it, or it is retried with the same charge
		d.claimFailed(ctx, session, err)
		return false
	}
}

// reminder is what the model of a turn is reminded of.
type reminder struct {
	recalled *journal.Recalled // nil = nothing
	flagged  bool              // it tries to give instructions
}

// remindModel looks up what may matter to the message of a turn that begins. It becomes part of the message's entry, so
// that the conversation before it, which a vendor may have cached, stays the same.
func (d *Dispatcher) remindModel(ctx context.Context, lane *bot.Lane, t *task, j *job, payer cost.Payer) {
	memory := d.parts.Memory
	if memory == nil || !memory.Has(t.msg) {
		return
	}
	d.stepAside(j) // a text is looked up by a request to its model
	of := &turn.Reminder{Message: t.msg}
	if tail, ok := d.kept.tail(lane); ok {
		for i := range tail.Entries {
			switch e := &tail.Entries[i]; {
			case e.Begins():
				of.Known = nil
			case e.Recalled != nil:
				of.Known = append(of.Known, e.Recalled.IDs...)
			}
		}
	}
	t.recalled, t.flagged = memory.Recall(cost.WithPayer(ctx, payer), of)
}
