package dispatch

// Express arrivals do not wait behind a turn: presses of buttons, /stop, /status and such, edits, and what is said of
// chats.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
)

// expressBatch is how many express arrivals are read at once.
const expressBatch = 64

// expressLoop handles arrivals that do not wait behind a turn: presses, /stop, /status and similar commands, and
// whatever belongs to no session. It handles them one after another; each needs a few reads and one Change.
func (d *Dispatcher) expressLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.express:
		}
		d.breakTurns(ctx)
		d.leaveLost(ctx)
		d.expressAll(ctx)
	}
}

// expressAll handles the waiting express arrivals, each once. One that fails is retried at the next look and does not
// delay the others.
func (d *Dispatcher) expressAll(ctx context.Context) {
	left := map[int64]bool{}
	defer func() { maps.DeleteFunc(d.seen, func(seq int64, _ time.Time) bool { return !left[seq] }) }()
	for more := true; more && ctx.Err() == nil; {
		list, err := d.parts.Store.Express(ctx, d.opts.Channel, d.opts.Bot, expressBatch+len(left))
		if err != nil {
			d.report(ctx, err, "read express arrivals")
			return
		}
		more = false
		for i := range list {
			seq := list[i].Seq
			if left[seq] || ctx.Err() != nil {
				continue
			}
			more = true
			if d.leavesArrival(&list[i]) {
				left[seq] = true
				continue
			}
			if err := d.expressOne(ctx, &list[i]); err != nil {
				left[seq] = true
				if !errors.Is(err, errHeld) {
					d.countFailure(ctx, "", &list[i], err)
				}
			}
		}
	}
}

// patience is how many sweeps an arrival is left to the process that accepted it.
const patience = 2

// leavesArrival reports whether an arrival is left for now to the process that accepted it, which is probably handling
// it. If that process is dead, this one takes over after a while. Two processes that handle the same arrival only do
// the work twice; they do no harm. Times are measured by this process alone, since clocks may differ.
func (d *Dispatcher) leavesArrival(a *bot.Arrival) bool {
	return d.opts.Shared && !d.recent.has(a.ID) && d.seenFor(a) < patience*d.opts.Sweep
}

// seenFor returns how long this process has known of an express arrival that it leaves.
func (d *Dispatcher) seenFor(a *bot.Arrival) time.Duration {
	now := d.parts.Now()
	first, known := d.seen[a.Seq]
	if !known {
		first, d.seen[a.Seq] = now, now
	}
	return now.Sub(first)
}

// errHeld leaves an arrival to a later look: another arrival may change what is decided about it.
var errHeld = errors.New("held")

func (d *Dispatcher) expressOne(ctx context.Context, a *bot.Arrival) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("express arrival panicked")
			err = poison{fmt.Errorf("panic: %v", p)}
		}
	}()
	msg, err := d.decodeArrival(a)
	if err != nil {
		return err
	}
	switch msg.Kind {
	case bot.Text:
		return d.expressText(ctx, a, &msg)
	case bot.Edited:
		return d.expressEdited(ctx, a, &msg)
	case bot.Press:
		return d.expressPress(ctx, a, &msg)
	case bot.StopTap:
		return d.storeEffect(ctx, a, func() (turn.Effect, error) { return d.stopTap(ctx, a, &msg) })
	case bot.Member:
		return d.expressMember(ctx, a, &msg)
	case bot.Connection:
		return d.expressConnection(ctx, a, &msg)
	case bot.Migrated:
		return d.moveGroup(ctx, a, &msg)
	default:
		return d.finishArrival(ctx, a)
	}
}

func (d *Dispatcher) expressPress(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	if msg.Unplaced {
		// All other buttons are about the chat that they are in.
		if found, err := d.parts.Approvals.Locate(ctx, msg); err != nil || !found {
			return cmp.Or(err, d.refusePress(ctx, a, msg, d.parts.Words.UnknownButton(msg.Language)))
		}
	}
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	if !verdict.OK {
		return d.refusePress(ctx, a, msg, verdict.Reply)
	}
	prefix, _, _ := strings.Cut(msg.Data, ":")
	presser := d.parts.Pressers[prefix]
	return d.storeEffect(ctx, a, func() (turn.Effect, error) {
		if presser == nil && prefix != againPrefix {
			return d.parts.Approvals.Press(ctx, msg)
		}
		call := &turn.Call{
			Message: msg,
			Session: d.session(msg),
			Admin:   verdict.Admin,
			Running: d.runsTurn(d.session(msg)),
		}
		if presser == nil {
			return d.pressAgain(ctx, call)
		}
		return presser.Press(ctx, call)
	})
}

// refusePress answers a press and does nothing else.
func (d *Dispatcher) refusePress(ctx context.Context, a *bot.Arrival, msg *bot.Message, text string) error {
	row := bot.Row{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: true, Content: bot.Content{Text: text},
	}
	return d.storeEffect(ctx, a, func() (turn.Effect, error) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}, nil
	})
}

func (d *Dispatcher) expressText(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	if !d.addressed(msg) || msg.Caller == "" && !msg.Unnamed {
		return d.finishArrival(ctx, a)
	}
	if msg.Caller == "" {
		return d.refuseUnnamed(ctx, a, msg)
	}
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	if !verdict.OK {
		return d.refuseSender(ctx, a, msg, verdict)
	}
	if msg.Command == "" { // of all other texts, only commands overtake
		return d.storeEffect(ctx, a, func() (turn.Effect, error) {
			return d.parts.Explanations.Explain(ctx, msg, a.At)
		})
	}
	call := &turn.Call{Message: msg, Session: d.session(msg), Admin: verdict.Admin, Allowed: verdict.Allowed}
	d.awaitBeginning(ctx, call.Session)
	call.Running = d.runsTurn(call.Session)
	var done []int64
	err = d.storeEffect(ctx, a, func() (turn.Effect, error) {
		e, err := d.parts.Commands.Run(ctx, call)
		done = e.Change.Done
		return e, err
	})
	if err != nil || len(done) == 0 {
		return err
	}
	d.stopDropped(ctx, call.Session, done)
	return nil
}

// refuseUnnamed tells those who write in the name of a group or a channel why nobody answers, once a day in a chat. Only
// where the bot talks at all, and only if they meant it.
func (d *Dispatcher) refuseUnnamed(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	if !msg.Addressed {
		return d.finishArrival(ctx, a)
	}
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	if verdict.Reason != turn.NotAPerson || verdict.Reply != "" {
		return d.refuseSender(ctx, a, msg, verdict)
	}
	row := bot.Row{
		Place: msg.Place, Purpose: bot.Notice, ReplyTo: msg.Message,
		Key:     "unnamed/" + msg.Place.ChatKey() + "/" + a.At.UTC().Format(time.DateOnly),
		Content: bot.Content{Text: d.parts.Words.WriteAsYourself(msg.Language), Language: msg.Language},
	}
	return d.storeEffect(ctx, a, func() (turn.Effect, error) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}, nil
	})
}

// errAdmitted leaves an arrival to the next look: its sender may talk here since.
var errAdmitted = errors.New("admitted meanwhile")

// refuseSender finishes an arrival of somebody who may not talk to the bot here.
func (d *Dispatcher) refuseSender(ctx context.Context, a *bot.Arrival, msg *bot.Message, v turn.Verdict) error {
	said := "message refused"
	if len(v.Change.Send) > 0 {
		said = "put to the admins"
	}
	d.parts.Log.Info().Str("caller", msg.Caller).Str("name", visible.Name(msg.Name)).Str("chat", msg.Place.Chat).
		Str("reason", v.Reason).Msg(said)
	computed := false
	return d.storeEffect(ctx, a, func() (turn.Effect, error) {
		if computed { // what was read for the verdict has changed
			next, err := d.parts.Guard.Admit(ctx, msg)
			if err != nil || next.OK != v.OK {
				return turn.Effect{}, cmp.Or(err, errAdmitted)
			}
			v = next
		}
		computed = true
		e := turn.Effect{Change: bot.Change{Send: slices.Clone(v.Change.Send), Facts: v.Change.Facts}}
		if v.Reply != "" {
			e.Change.Send = append(e.Change.Send, d.reply(
				msg, bot.Reply, v.Reply, onceKey(v.Once, d.parts.Now(), d.opts.OnceFor),
			))
		}
		return e, nil
	})
}

func (d *Dispatcher) finishArrival(ctx context.Context, a *bot.Arrival) error {
	_, err := d.parts.Store.Apply(ctx, &bot.Change{Handles: a.Seq})
	return ignoreHandled(err)
}

// ignoreHandled drops the error that says that another process has handled an arrival: that process
// also does what follows from it.
func ignoreHandled(err error) error {
	if errors.Is(err, bot.ErrHandled) {
		return nil
	}
	return err
}

// storeEffect stores what an arrival does, together with finishing it. compute is called again if the state has
// changed in the meantime. If several processes handle the same arrival, the first one to store its effect
// wins, and the others do nothing.
func (d *Dispatcher) storeEffect(ctx context.Context, a *bot.Arrival, compute func() (turn.Effect, error)) error {
	return d.ApplyEffect(ctx, func() (turn.Effect, error) {
		e, err := compute()
		if err != nil {
			return e, err
		}
		e.Change.Handles = a.Seq
		e.Change.Send = slices.DeleteFunc(e.Change.Send, isUnsaidRow)
		d.divideReplies(&e.Change)
		for i := range e.Change.Send {
			if e.Change.Send[i].Key == "" {
				e.Change.Send[i].Key = fmt.Sprintf("reply/%s/%d", d.turnID(a), i)
			}
		}
		return e, nil
	})
}

// storeEffectInLane is storeEffect for an arrival that waits in its lane: if another worker has begun a turn with it in
// the meantime, nothing is stored.
func (d *Dispatcher) storeEffectInLane(ctx context.Context, a *bot.Arrival, compute func() (turn.Effect, error)) error {
	return d.storeEffect(ctx, a, func() (turn.Effect, error) {
		e, err := compute()
		e.Change.Unbegun = a.Session
		return e, err
	})
}

// ApplyEffect stores an Effect and does what follows from it. It is also for what is decided outside of messages, such
// as on the operator's page. compute is called again if the state has changed in the meantime; its error ends it.
func (d *Dispatcher) ApplyEffect(ctx context.Context, compute func() (turn.Effect, error)) error {
	var err error
	for range 4 {
		var e turn.Effect
		if e, err = compute(); err != nil {
			return err
		}
		var applied *bot.Applied
		if applied, err = d.parts.Store.Apply(ctx, &e.Change); err == nil {
			d.forgetChanged(&e.Change)
			d.actOnEffect(e)
			d.runFollowUps(ctx, &e, applied)
			return nil
		}
		if !errors.Is(err, bot.ErrDecided) && !errors.Is(err, bot.ErrConflict) && !errors.Is(err, bot.ErrLost) {
			return ignoreHandled(err)
		}
	}
	return err
}

// divideReplies makes several rows of each reply that is too long for one message, as answers are.
func (d *Dispatcher) divideReplies(change *bot.Change) {
	if len(change.Ask) > 0 {
		return // their cards are named by where they are among the rows
	}
	var rows []bot.Row
	for i := range change.Send {
		row := change.Send[i]
		if row.Purpose != bot.Reply || row.Edit != "" || row.EditRow != 0 {
			rows = append(rows, row)
			continue
		}
		for k, content := range d.parts.Composer.Divide(row.Content, row.Place, row.Content.Language) {
			part := row
			if part.Content = content; k > 0 {
				part.ReplyTo = ""
				if part.Key != "" {
					part.Key += "/" + strconv.Itoa(k)
				}
			}
			rows = append(rows, part)
		}
	}
	change.Send = rows
}

// forgetChanged drops what is remembered of the sessions in a Change.
func (d *Dispatcher) forgetChanged(change *bot.Change) {
	for i := range change.Lanes {
		d.kept.drop(change.Lanes[i].Session)
	}
	for i := range change.Replace {
		d.kept.drop(change.Replace[i].Session)
	}
	if change.Append != nil {
		d.kept.drop(change.Append.Session)
	}
	if change.Unbegun != "" {
		d.kept.drop(change.Unbegun)
	}
}

// runFollowUps does what follows from an Effect that was stored. The arrival is finished by now, so
// that a failure is only logged.
func (d *Dispatcher) runFollowUps(ctx context.Context, e *turn.Effect, applied *bot.Applied) {
	if e.Then == nil {
		return
	}
	next, err := e.Then(ctx, applied)
	if err == nil {
		if _, err = d.parts.Store.Apply(ctx, &next.Change); err == nil || errors.Is(err, bot.ErrDecided) {
			err = nil
		}
	}
	d.actOnEffect(next) // wakes are harmless even if the Change was not stored
	d.report(ctx, err, "follow up an effect")
}

// actOnEffect does what follows from an Effect that was stored.
func (d *Dispatcher) actOnEffect(e turn.Effect) {
	for _, s := range e.Stop {
		d.stop(s, e.TurnToStop(s), agent.ErrStopped)
	}
	for _, s := range e.Decided {
		d.decide(s)
	}
	for _, s := range e.Wake {
		d.enqueue(s)
	}
	for _, row := range e.Change.Send {
		d.parts.Outbox.Wake(row.Place)
	}
}

// decidedLater keeps a decision about a turn that another process still works on: the turn may park with other
// questions open, and then nobody else looks at it.
func (d *Dispatcher) decidedLater(session bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decided[session] {
		d.retry[session] = true
	}
}

// runsTurn reports whether a turn of the session runs in this process.
func (d *Dispatcher) runsTurn(session bot.SessionKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobs[session]
	return j != nil && j.cancel != nil && j.held
}

// reply returns a row with a sentence for the place that a message came from.
func (d *Dispatcher) reply(msg *bot.Message, purpose bot.Purpose, text, key string) bot.Row {
	row := bot.Row{
		Place: msg.Place, Purpose: purpose, Content: bot.Content{Text: text, Language: msg.Language}, Key: key,
	}
	if msg.Place.Group {
		row.ReplyTo = msg.Message
	}
	return row
}

// onceKey returns the key of a row that is sent once per window: rows with equal keys are stored once.
func onceKey(key string, now time.Time, window time.Duration) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf("once/%s/%d", key, now.UnixNano()/int64(window))
}
