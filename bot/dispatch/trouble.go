package dispatch

// Failures: of an arrival, of a turn, and of the store.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

// poison is a failure that time does not mend: the arrival is given up after Options.Tries attempts. Any other failure
// may be an outage: the arrival is then tried once per sweep and given up after Options.GiveUp.
type poison struct{ err error }

func (p poison) Error() string { return p.err.Error() }

func (p poison) Unwrap() error { return p.err }

func hopeless(err error) bool {
	var p poison
	return errors.As(err, &p) || errors.Is(err, bot.ErrInvalid) || errors.Is(err, bot.ErrNotFound)
}

// countFailure counts a failed attempt at an arrival. After the last one, the arrival becomes a dead letter, the person
// is told and the session continues. It reports whether the session has more to do at once.
func (d *Dispatcher) countFailure(
	ctx context.Context, session bot.SessionKey, a *bot.Arrival, cause error,
) (more bool) {
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Str("arrival", a.ID).
				Msg("giving up an arrival panicked")
			more = false
		}
		if !more && session != "" {
			d.later(session)
		}
	}()
	if ctx.Err() != nil {
		return false
	}
	attempt := a.Attempts + 1
	tries := d.opts.Tries
	if !hopeless(cause) { // one attempt per sweep
		tries = max(tries, int(d.opts.GiveUp/d.opts.Sweep))
	}
	dead := attempt >= tries
	usual := errors.Is(cause, errMoving) && attempt <= patience
	if !usual && (dead || attempt&(attempt-1) == 0) { // the 1st, 2nd, 4th, 8th …
		d.parts.Log.Error().Err(cause).Str("arrival", a.ID).Str("session", string(session)).Int("attempt", attempt).
			Bool("given_up", dead).Msg("arrival not handled")
	}
	letter := bot.DeadLetter{Seq: a.Seq, Problem: cause.Error()}
	if dead {
		return d.giveUp(ctx, session, a, letter)
	}
	_, err := d.parts.Store.Apply(ctx, &bot.Change{Retry: []bot.DeadLetter{letter}})
	d.report(ctx, err, "count a failed arrival")
	return err == nil && hopeless(cause)
}

// giveUp makes an arrival a dead letter, ends the turn it began, and tells the person.
func (d *Dispatcher) giveUp(ctx context.Context, session bot.SessionKey, a *bot.Arrival, letter bot.DeadLetter) bool {
	change := &bot.Change{Dead: []bot.DeadLetter{letter}}
	turn, text := d.turnID(a), ""
	msg, unread := d.decodeArrival(a)
	if unread == nil {
		relocateMessage(&msg, a.Session)
		text = d.parts.Words.Broken(msg.Language, requestID(turn))
		change.Send = d.brokenRows(&msg, text, turn)
	}
	if session != "" {
		lane, err := d.parts.Store.Lane(ctx, session)
		if err != nil {
			d.report(ctx, err, "read a lane")
			return false
		}
		if unread != nil {
			text = d.parts.Words.At(lane.Place).Broken("", requestID(turn))
			change.Send = brokenIn(&lane, text, turn)
		}
		change.Unbegun = session
		if lane.Turn != "" && lane.Arrival == a.Seq {
			change.Unbegun = ""
			if err := d.addTurnEnd(ctx, &lane, change, journal.ReasonInternal, text); err != nil {
				d.report(ctx, err, "end a turn")
				return false
			}
		}
	}
	if _, err := d.parts.Store.Apply(ctx, change); err != nil {
		d.report(ctx, err, "give up an arrival")
		return false
	}
	for i := range change.Send {
		d.parts.Outbox.Wake(change.Send[i].Place)
	}
	return true
}

// brokenRows returns the rows that tell a person about an internal error: a toast for a press, a sentence for a message
// that was addressed to the bot, otherwise none.
func (d *Dispatcher) brokenRows(msg *bot.Message, text, turn string) []bot.Row {
	switch {
	case msg.Place.Business() != "":
	case msg.Kind == bot.Press:
		return []bot.Row{{
			Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: true, Content: bot.Content{Text: text},
			Key: "broken/" + turn,
		}}
	case msg.Kind == bot.Text && msg.Caller != "" && (!msg.Place.Group || msg.Addressed):
		return []bot.Row{d.reply(msg, bot.Reply, text, "broken/"+turn)}
	}
	return nil
}

// brokenIn returns the rows for a session whose message cannot be decoded. They are sent to the place of its lane, or
// else to the one in its key.
func brokenIn(lane *bot.Lane, text, turn string) []bot.Row {
	place, ok := lane.Place, true
	if place.Channel == "" {
		place, ok = lane.Session.Place()
	}
	if !ok || !place.Ordinary() {
		return nil
	}
	return []bot.Row{{Place: place, Purpose: bot.Reply, Content: bot.Content{Text: text}, Key: "broken/" + turn}}
}

// addTurnEnd adds to change what ends a turn from outside: the claim of the lane, the last entry, the withdrawal of the
// questions, and the idle state of the lane.
func (d *Dispatcher) addTurnEnd(ctx context.Context, lane *bot.Lane, change *bot.Change, reason, text string) error {
	if lane.Owner == d.opts.Owner {
		change.Lease = &bot.Lease{Session: lane.Session, Fence: lane.Fence}
	} else {
		change.Claim = d.laneClaim(lane, lane.Place)
	}
	entry := journal.Entry{Turn: lane.Turn, Kind: journal.EndEntry, At: d.parts.Now(), Reason: reason, Text: text}
	change.Append = &bot.Append{Session: lane.Session, After: lane.Last, Entries: []journal.Entry{entry}}
	change.Lanes = append(change.Lanes, isIdle(lane.Session))
	if err := d.parts.Approvals.Withdraw(ctx, lane.Session, lane.Turn, "", change); err != nil {
		return fmt.Errorf("withdraw questions: %w", err)
	}
	return nil
}

// laneClaim returns the claim of a free lane. A lease under our own name that no worker of ours holds was left by an
// earlier process or by a lost reply of the store, and does not block the claim.
func (d *Dispatcher) laneClaim(lane *bot.Lane, place bot.Place) *bot.Claim {
	now := d.parts.Now()
	c := &bot.Claim{
		Session: lane.Session, Place: place, Fence: lane.Fence, Owner: d.opts.Owner, Now: now,
		Until: now.Add(d.opts.Lease),
	}
	if lane.Owner == d.opts.Owner && lane.Until.After(now) {
		c.Now = lane.Until
	}
	if c.Workspace = lane.Workspace; c.Workspace == "" && d.parts.Workspace != nil {
		c.Workspace = d.parts.Workspace(lane.Session)
	}
	return c
}

// endOrphan ends a turn whose message is no longer waiting: a command dropped the message while the turn was beginning,
// and the process died before it could stop the turn. That command has told the person.
func (d *Dispatcher) endOrphan(ctx context.Context, lane *bot.Lane) bool {
	d.parts.Log.Info().Str("session", string(lane.Session)).Str("turn", lane.Turn).
		Msg("turn ended: its message was dropped")
	change := &bot.Change{}
	text := d.parts.Words.At(lane.Place).Ended("", journal.ReasonStopped, "", journal.Stats{}, requestID(lane.Turn))
	err := d.addTurnEnd(ctx, lane, change, journal.ReasonStopped, text)
	if err == nil {
		_, err = d.parts.Store.Apply(ctx, change)
	}
	if err != nil && !isTaken(err) {
		d.report(ctx, err, "end a dropped turn")
		d.later(lane.Session)
	}
	return err == nil
}

// isTaken reports whether err means that another worker has the lane, so that there is nothing to do here.
func isTaken(err error) bool { return errors.Is(err, bot.ErrLost) || errors.Is(err, bot.ErrConflict) }

// Limits for what is said while nothing can be stored. It is sent without the outbox, which needs the store.
const (
	outageChats  = 32               // chats that are told about one outage
	outageWithin = 10 * time.Second // for all sends of one batch
)

// outage is a period in which the store refuses everything, for example because the disk is full or the file cannot be
// written.
type outage struct {
	mu   sync.Mutex
	told map[string]bool // the chats that were told, by key; nil = the store works
}

// begin reports whether the chat has to be told.
func (o *outage) begin(chat string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = map[string]bool{}
	}
	if o.told[chat] || len(o.told) >= outageChats {
		return false
	}
	o.told[chat] = true
	return true
}

// over records that the store works.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = nil
}

// advice is an error that says what an operator can do about a failed store.
type advice interface{ Advice() reason.Reason }

// unstored tells people, once per chat and outage, that their messages could not be stored, and tells admins why.
// Nothing is lost: the messages were not confirmed, so that the channel delivers them again. It says nothing if a
// Change was refused because of its content.
func (d *Dispatcher) unstored(ctx context.Context, raws []turn.Raw, cause error) {
	var why advice
	if d.parts.Direct == nil || ctx.Err() != nil || !errors.As(cause, &why) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, outageWithin)
	defer cancel()
	if d.parts.Operators != nil {
		for _, place := range d.parts.Operators() {
			d.say(ctx, bot.Row{
				Place:   place,
				Purpose: bot.Notice,
				Content: bot.Content{Text: d.parts.Words.At(place).OutOfOrder("", why.Advice())},
			})
		}
	}
	for _, raw := range raws {
		a := d.arrivalFor(raw)
		msg, err := d.decodeArrival(&a)
		if err != nil || msg.Kind != bot.Text || msg.Caller == "" || !d.addressed(&msg) || !msg.Place.Ordinary() {
			continue
		}
		verdict, err := d.parts.Guard.Admit(ctx, &msg)
		if err != nil || !verdict.OK {
			continue
		}
		d.say(ctx, d.reply(&msg, bot.Notice, d.parts.Words.Unstored(msg.Language), ""))
	}
}

// say sends a row without storing it, unless its chat was told already. A failure can only be logged.
func (d *Dispatcher) say(ctx context.Context, row bot.Row) {
	if !d.outage.begin(row.Place.ChatKey()) {
		return
	}
	if _, err := d.parts.Direct.Send(ctx, &row); err != nil && ctx.Err() == nil {
		d.parts.Log.Warn().Err(err).Str("chat", row.Place.Chat).
			Msg("nobody could be told that the store is out of order")
	}
}
