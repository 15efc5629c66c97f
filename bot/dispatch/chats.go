package dispatch

// Chats come and go: a group gets a new id, the bot is removed from a chat or blocked, a business account connects.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// moveGroup moves a group's work to its new chat. Turns that run here lose their lanes to that Change: they end,
// and are resumed in the new chat.
func (d *Dispatcher) moveGroup(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	if msg.Target == "" || msg.Target == msg.Place.Chat {
		return d.finishArrival(ctx, a)
	}
	_, err := d.parts.Store.Apply(ctx, &bot.Change{
		Handles: a.Seq,
		Move:    &bot.Move{Channel: d.opts.Channel, Bot: d.opts.Bot, From: msg.Place.Chat, To: msg.Target},
	})
	if err != nil {
		return ignoreHandled(err)
	}
	for _, h := range d.holders() {
		if h.lease.Session.InChat(msg.Place.ChatKey()) {
			h.cancel(bot.ErrLost)
		}
	}
	return nil
}

// errMoving is why somebody is neither admitted nor refused yet.
var errMoving = errors.New("the group is getting a new id, under which it is not known yet")

// patient is a Guard that refuses nobody too early, and notes what the sender of a message is called.
type patient struct {
	turn.Guard
	reader *Dispatcher // of arrivals; it is never started
}

// withPatientGuard makes the Guard of a Dispatcher a patient one.
func withPatientGuard(parts Parts, opts Options) (Parts, Options) {
	parts.Guard = patient{Guard: parts.Guard, reader: &Dispatcher{parts: parts, opts: opts}}
	return parts, opts
}

// Admit implements turn.Guard. A group that is not on the list may be the new id of one that is, which another arrival
// tells: nobody in it is refused while that waits, here or in another process. Then the error is errMoving.
func (p patient) Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	verdict, err := p.admitPatiently(ctx, msg)
	msg.Called = verdict.Called
	return verdict, err
}

func (p patient) admitPatiently(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	verdict, err := p.Guard.Admit(ctx, msg)
	if err != nil || verdict.OK || !msg.Place.Group {
		return verdict, err
	}
	moving, err := p.reader.moving(ctx, msg.Place.Chat)
	switch {
	case err != nil:
		return turn.Verdict{}, err
	case moving:
		return turn.Verdict{}, errMoving
	default: // it may have moved between the two looks
		return p.Guard.Admit(ctx, msg)
	}
}

// moving says whether an arrival waits that tells of a chat as the new id of a group.
func (d *Dispatcher) moving(ctx context.Context, chat string) (bool, error) {
	waiting, err := d.parts.Store.Express(ctx, d.opts.Channel, d.opts.Bot, expressBatch)
	if err != nil {
		return false, fmt.Errorf("look for groups with new ids: %w", err)
	}
	for i := range waiting {
		// one that cannot be read tells of nothing
		if msg, err := d.decodeArrival(&waiting[i]); err == nil && msg.Kind == bot.Migrated && msg.Target == chat {
			return true, nil
		}
	}
	return false, nil
}

// expressMember tells a group that is not admitted so, once, and ends the work of a chat that the bot has left. Whoever adds
// the bot by a link sends the link's code next: the group waits for that, so that it is not told the contrary first.
func (d *Dispatcher) expressMember(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	var verdict turn.Verdict
	joined := msg.Status == "joined" && msg.Place.Group
	if joined {
		var err error
		if verdict, err = d.parts.Guard.Admit(ctx, msg); err != nil {
			return err
		}
		if !verdict.OK && d.seenFor(a) < verdict.Wait { // after a restart it waits again: what it waits for arrives now
			return errHeld
		}
	}
	d.parts.Log.Info().Str("chat", msg.Place.Chat).Str("status", msg.Status).Msg("membership changed")
	switch {
	case msg.Status == "left" || msg.Status == "blocked":
		return d.storeEffect(ctx, a, func() (turn.Effect, error) { return d.loseChat(ctx, a, msg.Place) })
	case !joined || verdict.OK:
		return d.finishArrival(ctx, a)
	default:
		return d.refuseSender(ctx, a, msg, verdict)
	}
}

// expressConnection records that the bot was connected to a business account or disconnected, and tells its owner.
func (d *Dispatcher) expressConnection(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	return d.refuseSender(ctx, a, msg, verdict)
}

// loseChat ends the work of a chat that the bot was removed from, and switches off what begins turns there.
func (d *Dispatcher) loseChat(ctx context.Context, a *bot.Arrival, place bot.Place) (turn.Effect, error) {
	e, err := d.leaveChat(ctx, place.ChatKey(), func(seq int64, _ time.Time) bool { return seq < a.Seq })
	if err != nil {
		return e, err
	}
	var then []func(context.Context, *bot.Applied) (turn.Effect, error)
	for _, source := range slices.Sorted(maps.Keys(d.parts.Runs)) {
		off, err := d.parts.Runs[source].Left(ctx, place, a.ID)
		if err != nil {
			return e, err
		}
		e.Change.Facts = append(e.Change.Facts, off.Change.Facts...)
		e.Change.Send = append(e.Change.Send, off.Change.Send...)
		if off.Then != nil {
			then = append(then, off.Then)
		}
	}
	if len(then) == 0 {
		return e, nil
	}
	e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
		for _, each := range then {
			if _, err := each(ctx, applied); err != nil {
				return turn.Effect{}, err
			}
		}
		return turn.Effect{}, nil
	}
	return e, nil
}

// Gone reports that a chat cannot be reached any more because the bot was blocked or removed, as a request that
// began at a time of the store's clock has shown. The express loop ends the turns of the chat and its other
// work. Messages that arrived after the request began are handled as usual: who writes them has let the bot in
// again. Safe for concurrent use.
func (d *Dispatcher) Gone(place bot.Place, asked time.Time) {
	chat := place.ChatKey()
	d.mu.Lock()
	if asked.After(d.lost[chat]) {
		d.lost[chat] = asked
	}
	d.mu.Unlock()
	d.nudge(d.express)
}

// leaveLost ends the work of the chats that cannot be reached.
func (d *Dispatcher) leaveLost(ctx context.Context) {
	d.mu.Lock()
	lost := d.lost
	d.lost = map[string]time.Time{}
	d.mu.Unlock()
	for chat, since := range lost {
		if err := d.leaveOne(ctx, chat, since); err != nil {
			d.report(ctx, err, "end the work of a chat that is gone")
			d.mu.Lock()
			if d.lost[chat].IsZero() {
				d.lost[chat] = since
			}
			d.mu.Unlock()
		}
	}
}

func (d *Dispatcher) leaveOne(ctx context.Context, chat string, since time.Time) error {
	for range 4 {
		e, err := d.leaveChat(ctx, chat, func(_ int64, at time.Time) bool { return !at.After(since) })
		if err != nil || len(e.Stop)+len(e.Change.Done) == 0 {
			return err
		}
		_, err = d.parts.Store.Apply(ctx, &e.Change)
		switch {
		case err == nil:
			d.actOnEffect(e)
			return nil
		case !errors.Is(err, bot.ErrConflict) && !errors.Is(err, bot.ErrLost):
			return fmt.Errorf("end the turns of a chat: %w", err)
		}
	}
	return nil // it changes too fast: whatever begins there will fail to send, too
}

// leaveChat returns the Effect that ends the work of a chat, as far as meant selects it: turns are stopped, including
// parked ones with their questions, and waiting messages are dropped. Nobody is told, it is only logged. Commands in
// the background run to their end.
func (d *Dispatcher) leaveChat(
	ctx context.Context, chat string, meant func(seq int64, at time.Time) bool,
) (turn.Effect, error) {
	var e turn.Effect
	lanes, err := d.parts.Store.Busy(ctx, chat)
	if err != nil {
		return e, err
	}
	tickets, err := d.parts.Store.Tickets(ctx, chat)
	if err != nil {
		return e, err
	}
	own := map[int64]bot.Lane{}
	for i := range lanes {
		own[lanes[i].Arrival] = lanes[i]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range tickets {
		lane, busy := own[t.Seq]
		switch {
		case !meant(t.Seq, t.At):
		case !busy || lane.Session != t.Session:
			e.Change.Done = append(e.Change.Done, t.Seq)
		default:
			turn := lane.Turn
			d.leaving[t.Session] = turn
			e.Stop = append(e.Stop, t.Session)
			e.Change.Lanes = append(e.Change.Lanes, bot.LaneUpdate{Session: t.Session, Stop: &turn})
		}
	}
	if len(e.Stop)+len(e.Change.Done) > 0 {
		d.parts.Log.Info().Str("chat", chat).Int("turns", len(e.Stop)).Int("messages", len(e.Change.Done)).
			Msg("the chat is gone: its turns are ended, its waiting messages dropped")
	}
	return e, nil
}
