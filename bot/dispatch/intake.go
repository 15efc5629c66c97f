package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// incoming is an update on its way into the store.
type incoming struct {
	raw       turn.Raw
	arrival   bot.Arrival
	msg       bot.Message // zero when it cannot be decoded
	moved     *bot.Fact
	interrupt bool // it is a command that may stop the turn in progress
	plain     bool // a message that would begin a turn, were its session idle
	fresh     bool // certainly not stored before
	first     *first
}

// Accept stores updates. When it returns nil they are durable, each once, and will be answered whatever happens to this
// process; only then may the channel confirm them. On an error nothing was confirmed and the same updates may be
// accepted again.
func (d *Dispatcher) Accept(ctx context.Context, raws []turn.Raw) error {
	if len(raws) == 0 {
		return nil
	}
	now := d.parts.Now()
	batch := make([]incoming, len(raws))
	for i, raw := range raws {
		batch[i] = d.arrival(raw, now)
	}
	d.recent.note(batch)
	d.beginFirsts(batch)
	err := d.keepAll(ctx, batch, func(in *incoming) bool { return in.first == nil })
	awaitFirsts(batch)
	if err == nil {
		err = d.keepAll(ctx, batch, func(in *incoming) bool { return in.first != nil && !in.first.begun })
	}
	if err != nil {
		d.unstored(ctx, raws, err)
		return fmt.Errorf("store %d updates: %w", len(raws), err)
	}
	d.outage.over()
	return nil
}

// keepAll stores those updates of a batch that are chosen, as one Change, and tells of them.
func (d *Dispatcher) keepAll(ctx context.Context, batch []incoming, chosen func(*incoming) bool) error {
	change := &bot.Change{}
	var list []*incoming
	for i := range batch {
		if !chosen(&batch[i]) {
			continue
		}
		list = append(list, &batch[i])
		change.Arrive = append(change.Arrive, batch[i].arrival)
		if batch[i].moved != nil {
			change.Facts = append(change.Facts, *batch[i].moved)
		}
	}
	if len(change.Arrive) == 0 {
		return nil
	}
	if _, err := d.parts.Store.Apply(ctx, change); err != nil {
		return err
	}
	d.hint(list)
	return nil
}

// hint tells of what is in the store, where it would be found a little later too. Repeated updates get their hints
// again, because the first time the answer of the store may have been lost.
func (d *Dispatcher) hint(list []*incoming) {
	express := false
	for _, in := range list {
		if in.arrival.Express {
			express = true
			continue
		}
		if in.interrupt {
			express = true
			d.mu.Lock()
			d.breaks[in.arrival.Session] = true
			d.mu.Unlock()
		}
		d.enqueueFor(in.arrival.Session, in.msg.Person)
	}
	if express {
		d.nudge(d.express)
	}
}

// received is an update as it would be stored.
func (d *Dispatcher) received(raw turn.Raw) bot.Arrival {
	return bot.Arrival{Channel: d.opts.Channel, Bot: d.opts.Bot, ID: raw.ID, Source: cmp.Or(raw.Source, bot.Source(d.opts.Channel)), Raw: raw.Body}
}

// arrival decides which way an update takes. It must not fail: what cannot be understood goes the express way and ends
// as a dead letter.
func (d *Dispatcher) arrival(raw turn.Raw, now time.Time) incoming {
	in := incoming{raw: raw, arrival: d.received(raw)}
	in.arrival.At, in.arrival.Express = now, true
	msg, err := d.decode(&in.arrival)
	if err != nil {
		d.observe("update", "undecodable", 0)
		return in
	}
	in.msg = msg
	d.observe("update", string(msg.Kind), 0)
	if msg.Kind == bot.Migrated && msg.Target != "" {
		// Known before anything that was written in the new chat is worked on.
		in.moved = &bot.Fact{Bucket: bot.MovedBucket, Key: d.opts.Channel + "/" + msg.Target, Value: msg.Place.Chat}
		return in
	}
	if msg.Kind != bot.Text || msg.Caller == "" || !d.addressed(&msg) {
		return in
	}
	class := d.class(&msg)
	if class == turn.Overtakes {
		return in
	}
	in.arrival.Session, in.arrival.Express = d.session(&msg), false
	in.interrupt, in.plain = class == turn.Interrupts, msg.Command == ""
	return in
}

func (d *Dispatcher) class(msg *bot.Message) turn.Class {
	if msg.Command == "" {
		return turn.Unknown
	}
	return d.parts.Commands.Class(msg.Command)
}

// addressed says whether a message is meant for the bot.
func (d *Dispatcher) addressed(msg *bot.Message) bool {
	return !msg.Place.Group || msg.Addressed || d.parts.Guard.Rules(msg.Place).AnyMessage
}

// session is the key of the conversation a message belongs to.
func (d *Dispatcher) session(msg *bot.Message) bot.SessionKey {
	person := ""
	if msg.Place.Group && !d.parts.Guard.Rules(msg.Place).SharedSession {
		person = msg.Person
	}
	return msg.Place.SessionKey(person)
}

// decode reads an arrival as its source writes them. bot.ErrForeign when this version of the program cannot know how:
// where processes of two versions work on one store, one of the other may. Any other error is poison. It guards against
// a decoder that panics on bytes nobody foresaw.
func (d *Dispatcher) decode(a *bot.Arrival) (msg bot.Message, err error) {
	source := cmp.Or(a.Source, bot.Source(a.Channel))
	decoder := d.parts.Decoders[source]
	if decoder == nil {
		return msg, fmt.Errorf("an arrival from the source %q, which is not known here: %w", source, bot.ErrForeign)
	}
	defer func() {
		if p := recover(); p != nil {
			err = poison{fmt.Errorf("decoder panicked: %v", p)}
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("update not decodable")
		}
	}()
	if msg, err = decoder.Decode(a.Raw); err != nil && !errors.Is(err, bot.ErrForeign) {
		err = poison{err}
	}
	return msg, err
}

// relocate gives a message the chat its session is in now: a group may have got a new id since the message was written.
// Message ids of the old chat mean nothing in the new one.
func relocate(msg *bot.Message, session bot.SessionKey) {
	if chat := session.Chat(); chat != "" && chat != msg.Place.Chat {
		msg.Place.Chat, msg.Message = chat, ""
	}
}

func ptr[T any](v T) *T { return new(v) }
