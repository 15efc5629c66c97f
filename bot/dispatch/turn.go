package dispatch

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// commitTime bounds a Change that must not be given up because a turn was cancelled.
const commitTime = 15 * time.Second

const (
	commitPause = 200 * time.Millisecond // before the second try to store a result, more before the next ones
	faultWait   = 5 * time.Second        // before a turn is tried again that failed by a fault of ours
)

var zeroTime time.Time

// commitTries is how often a Change with the result of a run is tried: the work is done, it should not be thrown away
// for a hiccup of the store.
const commitTries = 4

// goOnWith moves a turn whose lane is held, and commits what came out.
func (d *Dispatcher) goOnWith(ctx context.Context, lane *bot.Lane, t *task, j *job) bool {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := d.newWork(lane, t)
	d.mu.Lock()
	j.cancel, j.lease, j.turn, j.held = cancel, w.lease, lane.Turn, true
	d.mu.Unlock()
	// What came between reading the lane and now is in the store.
	stop, dropped := d.overtaken(ctx, lane)
	if dropped {
		return d.orphan(ctx, lane)
	}
	if stop || !t.verdict.OK {
		d.mu.Lock()
		cause := d.stopCause(lane.Session, lane.Turn)
		d.mu.Unlock()
		cancel(cause)
	}
	ctx = w.logged(ctx)
	began := time.Now()
	sink, hide := w.watch(ctx)
	out, err := func() (agent.Outcome, error) {
		defer hide()
		return d.parts.Runner.Run(ctx, w.turn, w.journal, sink)
	}()
	return w.conclude(ctx, out, err, time.Since(began))
}

// newWork makes what a run needs of a turn whose lane is held, or will be.
func (d *Dispatcher) newWork(lane *bot.Lane, t *task) *work {
	w := &work{
		d: d, lane: lane, arrival: t.arrival, msg: t.msg, lease: bot.Lease{Session: lane.Session, Fence: lane.Fence}, turn: d.turnOf(lane, t), live: lane.Live,
	}
	w.journal = &laneJournal{store: d.parts.Store, lease: w.lease, last: lane.Last, notices: w.notices, wake: func() { d.parts.Outbox.Wake(w.msg.Place) }}
	w.journal.weigh = func(history int64) { d.weigh(lane.Session, history) }
	w.journal.tail, w.journal.known = d.kept.tail(lane)
	return w
}

// logged is a context whose log names the turn.
func (w *work) logged(ctx context.Context) context.Context {
	log := w.d.parts.Log.With().Str("session", string(w.lane.Session)).Str("turn", w.lane.Turn).Str("caller", w.msg.Caller).Str("request", w.turn.Request).Logger()
	return log.WithContext(ctx)
}

// conclude commits what came out of a run, or leaves the turn for later. It reports whether the session may have more
// to do.
func (w *work) conclude(ctx context.Context, out agent.Outcome, err error, took time.Duration) bool {
	if err != nil {
		return w.unfinished(ctx, err)
	}
	w.d.observe("turn", string(out.Kind), took)
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	if err := w.commit(kept, out); err != nil {
		return w.unfinished(kept, err)
	}
	w.d.parts.Outbox.Wake(w.msg.Place)
	return !w.alone
}

// overtaken says whether the turn was stopped, or its message dropped, before anything here could be cancelled.
func (d *Dispatcher) overtaken(ctx context.Context, lane *bot.Lane) (stop, dropped bool) {
	if now, err := d.parts.Store.Lane(ctx, lane.Session); err == nil && stopped(&now) && now.Turn == lane.Turn {
		stop = true
	}
	waiting, err := d.parts.Store.Next(ctx, lane.Session, lookAhead)
	if err != nil {
		return stop, false
	}
	own := slices.ContainsFunc(waiting, func(a bot.Arrival) bool { return a.Seq == lane.Arrival })
	if !own && len(waiting) < lookAhead {
		return stop, true
	}
	return stop || d.interrupted(ctx, waiting, lane.Arrival), false
}

// unfinished leaves a turn for later: to another worker, to the next process, or to the next sweep.
func (w *work) unfinished(ctx context.Context, err error) bool {
	log := zerolog.Ctx(ctx)
	switch {
	case taken(err), errors.Is(context.Cause(ctx), bot.ErrLost):
		log.Info().Err(err).Msg("turn taken over by another worker")
		return false
	case errors.Is(context.Cause(ctx), context.Canceled):
		log.Info().Msg("turn interrupted; the next start goes on with it")
	default:
		return w.faulty(ctx, err)
	}
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	_, err = w.d.parts.Store.Apply(kept, &bot.Change{Lease: &w.lease, Lanes: []bot.LaneUpdate{{Session: w.lease.Session, Release: true}}})
	if err != nil && !taken(err) {
		log.Error().Err(err).Msg("lane not given back")
	}
	return false
}

// faulty keeps a turn that failed by a fault of ours for another try, and gives it up in the end.
func (w *work) faulty(ctx context.Context, cause error) bool {
	log := zerolog.Ctx(ctx)
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer done()
	since := w.failingSince()
	failing := w.d.parts.Now().Sub(since)
	if failing >= w.d.opts.GiveUp || hopeless(cause) {
		log.Error().Err(cause).Msg("turn given up: it fails by a fault")
		entry := journal.Entry{Turn: w.turn.ID, Kind: journal.EndEntry, At: w.d.parts.Now(), Reason: journal.ReasonInternal}
		err := w.commit(kept, agent.Outcome{Kind: agent.Ended, Reason: journal.ReasonInternal, Entries: []journal.Entry{entry}})
		if err == nil {
			w.d.parts.Outbox.Wake(w.msg.Place)
			return true
		}
		cause = err
	}
	log.Error().Err(cause).Msg("turn interrupted by a fault; it is tried again")
	due := w.d.parts.Now().Add(max(faultWait, backoff(failing)))
	_, err := w.d.parts.Store.Apply(kept, &bot.Change{Lease: &w.lease, Lanes: []bot.LaneUpdate{{
		Session: w.lease.Session, State: ptr(bot.Waiting), Failing: &since, NotBefore: &due, Release: true,
	}}})
	if err != nil && !taken(err) {
		log.Error().Err(err).Msg("lane not given back")
	}
	w.d.later(w.lease.Session) // also where the answer of the store got lost
	return false
}

// failingSince is the first failure since the turn last made progress.
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
	fresh   bool // the turn has begun with this run: nobody was asked anything yet
	alone   bool // nothing else waited in the session when it began

	live   int64 // outbox row of the placeholder; of the goroutine that shows the turn, then of the worker
	unsure bool  // the store may have one that is not known here
}

type silent struct{}

func (silent) Emit(context.Context, agent.Event) {}

// watch starts showing the turn; the returned function ends that and waits until nothing more can be shown.
func (w *work) watch(ctx context.Context) (agent.Sink, func()) {
	if w.d.parts.Progress == nil {
		return silent{}, func() {}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(w.turn.ID)) // a hash never fails
	p := w.d.parts.Progress(turn.Watched{
		Place: w.msg.Place, Turn: w.turn.ID, Draft: int64(h.Sum32()&0x3fffffff) + 1, Language: w.msg.Language, Placeholder: w.placeholder,
		Gone: func() { w.d.Gone(w.msg.Place) },
	})
	done := make(chan struct{})
	w.d.wg.Go(func() {
		defer close(done)
		if err := p.Run(ctx); err != nil && ctx.Err() == nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("progress not shown")
		}
	})
	return p, func() { // also after a panic of the Runner
		p.Close()
		<-done
	}
}

// placeholder makes the message that will grow into the answer, or tells its id once it is delivered.
func (w *work) placeholder(ctx context.Context) (string, error) {
	if w.live != 0 {
		row, err := w.d.parts.Store.Row(ctx, w.live)
		if err != nil {
			return "", err
		}
		return row.Message, nil
	}
	row := w.row(bot.Placeholder, bot.Content{Text: w.d.parts.Words.Placeholder(w.msg.Language)}, "live/"+w.turn.ID)
	w.unsure = true
	applied, err := w.d.parts.Store.Apply(ctx, &bot.Change{
		Lease: &w.lease, Send: []bot.Row{row}, Lanes: []bot.LaneUpdate{{Session: w.lane.Session}}, PlaceholderOf: w.lane.Session,
	})
	if err == nil {
		w.live, w.unsure = applied.Rows[0], false
		w.d.parts.Outbox.Wake(w.msg.Place)
	}
	return "", err
}

func (w *work) row(purpose bot.Purpose, content bot.Content, key string) bot.Row {
	row := w.d.reply(w.msg, purpose, "", key)
	content.Language = w.msg.Language
	row.Session, row.Turn, row.Content = w.lane.Session, w.turn.ID, content
	return row
}

// commit stores what a run came to, with everything that follows from it, as one Change. The store gets a few tries;
// where its answer may have been lost, a lane that is no longer ours means that the Change is in.
func (w *work) commit(ctx context.Context, out agent.Outcome) error {
	var failed error
	for try := range commitTries {
		if try > 0 && !pause(ctx, time.Duration(try)*commitPause) {
			return failed
		}
		change, err := w.change(ctx, out)
		if err == nil {
			_, err = w.d.parts.Store.Apply(ctx, change)
		}
		switch {
		case err == nil:
			w.keep(out)
			return nil
		case taken(err) && failed != nil:
			return nil
		case taken(err), hopeless(err):
			return err
		}
		failed = err
	}
	return failed
}

func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// change is what follows from an outcome.
func (w *work) change(ctx context.Context, out agent.Outcome) (*bot.Change, error) {
	change := &bot.Change{Lease: &w.lease}
	var err error
	switch out.Kind {
	case agent.Answered:
		err = w.answered(ctx, change, out)
	case agent.Ended:
		err = w.ended(ctx, change, out)
	case agent.Parked:
		err = w.parked(ctx, change, out)
	case agent.Later:
		err = w.later(ctx, change, out)
	default:
		err = fmt.Errorf("outcome %q: %w", out.Kind, bot.ErrInvalid)
	}
	if err == nil {
		err = w.placeholderNow(ctx, change)
	}
	return change, err
}

// placeholderNow makes the first final row an edit of the placeholder, if there is one.
func (w *work) placeholderNow(ctx context.Context, change *bot.Change) error {
	if w.unsure {
		lane, err := w.d.parts.Store.Lane(ctx, w.lane.Session)
		if err != nil {
			return err
		}
		w.live, w.unsure = lane.Live, false
	}
	for i := range change.Send {
		if w.live != 0 && change.Send[i].Purpose == bot.Final {
			change.Send[i].EditRow = w.live
			break
		}
	}
	return nil
}

// finals are the rows of an answer.
func (w *work) finals(contents []bot.Content) []bot.Row {
	rows := make([]bot.Row, len(contents))
	for i, c := range contents {
		rows[i] = w.row(bot.Final, c, "final/"+w.turn.ID+"/"+strconv.Itoa(i))
		if i > 0 {
			rows[i].ReplyTo = ""
		}
	}
	return rows
}

func (w *work) finish(change *bot.Change, entries []journal.Entry) {
	if len(entries) > 0 {
		change.Append = &bot.Append{Session: w.lane.Session, After: w.journal.last, Entries: entries}
	}
	change.Done = append(change.Done, w.arrival.Seq)
	change.Lanes = append(change.Lanes, idle(w.lane.Session))
}

func (w *work) answered(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	text := out.Text
	if out.Reason == "length" {
		text += "\n\n" + w.d.parts.Words.Cut(w.msg.Language)
	}
	contents := w.d.parts.Composer.Compose(text)
	if len(contents) == 0 { // nothing that can be seen
		contents = []bot.Content{{Text: w.d.parts.Words.Ended(w.msg.Language, journal.ReasonEmpty, "", out.Stats, w.turn.Request)}}
	}
	change.Send = w.finals(contents)
	w.finish(change, out.Entries)
	return w.withdraw(ctx, change)
}

// withdraw adds the withdrawal of what people were asked and have not decided.
func (w *work) withdraw(ctx context.Context, change *bot.Change) error {
	if w.fresh {
		return nil
	}
	return w.d.parts.Approvals.Withdraw(ctx, w.lane.Session, w.turn.ID, w.turn.Origin.Caller, change)
}

func (w *work) ended(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	text := out.Text
	if len(out.Entries) > 0 { // none: the turn had ended before, its text is what was told
		text = w.d.parts.Words.Ended(w.msg.Language, out.Reason, out.Text, out.Stats, w.turn.Request)
		out.Entries[len(out.Entries)-1].Text = text
	}
	if out.Reason != journal.ReasonGone { // it would reach nobody
		change.Send = w.finals(w.d.parts.Composer.Compose(text))
	}
	w.finish(change, out.Entries)
	return w.withdraw(ctx, change)
}

func (w *work) parked(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	now := w.d.parts.Now()
	change.Lanes = []bot.LaneUpdate{{Session: w.lane.Session, State: ptr(bot.Parked), Since: &now, Failing: &zeroTime, Release: true}}
	asked := turn.Asked{
		Session: w.lane.Session, Turn: w.turn.ID, Place: w.msg.Place, Caller: w.msg.Caller, Name: w.msg.Name, Language: w.msg.Language,
		Questions: out.Questions, Stats: out.Stats,
	}
	if w.msg.Place.Group {
		asked.ReplyTo = w.msg.Message
	}
	return w.d.parts.Approvals.Ask(ctx, asked, change)
}

// later keeps the turn while the model is away, tells the person once, and gives up in the end.
func (w *work) later(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	now := w.d.parts.Now()
	since := w.failingSince()
	if now.Sub(since) >= w.d.opts.GiveUp {
		entry := journal.Entry{Turn: w.turn.ID, Kind: journal.EndEntry, At: now, Reason: journal.ReasonGivenUp}
		return w.ended(ctx, change, agent.Outcome{Kind: agent.Ended, Reason: journal.ReasonGivenUp, Entries: []journal.Entry{entry}, Stats: out.Stats})
	}
	wait := max(out.RetryAfter, backoff(now.Sub(since)))
	due := now.Add(wait)
	zerolog.Ctx(ctx).Warn().Err(out.Err).Dur("wait", wait).Msg("the model is away; the turn waits")
	change.Lanes = []bot.LaneUpdate{{Session: w.lane.Session, State: ptr(bot.Waiting), Failing: &since, NotBefore: &due, Release: true}}
	change.Send = []bot.Row{w.row(bot.Notice, bot.Content{Text: w.d.parts.Words.Away(w.msg.Language, w.turn.Request)}, "away/"+w.turn.ID)}
	return nil
}

// backoff waits a third of the time that has passed, between 2 s and a minute.
func backoff(since time.Duration) time.Duration {
	return min(max(since/3, 2*time.Second), time.Minute)
}

// notices are the rows that tell the person what a call's result brought besides.
func (w *work) notices(entries []journal.Entry) []bot.Row {
	var rows []bot.Row
	for _, e := range entries {
		for i, text := range e.Notices {
			rows = append(rows, w.row(bot.Notice, bot.Content{Text: text}, "note/"+w.turn.ID+"/"+e.Call+"/"+strconv.Itoa(i)))
		}
		for i := range e.Parts {
			if e.Kind == journal.ResultEntry {
				rows = append(rows, w.row(bot.Notice, w.made(&e, &e.Parts[i]), "file/"+w.turn.ID+"/"+e.Call+"/"+strconv.Itoa(i)))
			}
		}
	}
	return rows
}

// made shows what a tool has made, or says that it could not be kept.
func (w *work) made(e *journal.Entry, p *llm.Part) bot.Content {
	if p.Hash == "" {
		return bot.Content{Text: w.d.parts.Words.NotKept(w.msg.Language, e.Tool, p.Name)}
	}
	return bot.Content{Text: e.Tool + " · " + p.Name, File: &bot.File{Name: p.Name, Type: p.Type, Hash: p.Hash, Size: p.Size}}
}
