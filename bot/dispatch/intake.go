package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Raw is an update as the channel received it.
type Raw struct {
	ID   string // unique on the channel
	Body []byte
}

// Accept stores updates. When it returns nil they are durable, each once, and will be answered whatever happens to this process; only then may the
// channel confirm them. On an error nothing was confirmed and the same updates may be accepted again.
func (d *Dispatcher) Accept(ctx context.Context, raws []Raw) error {
	if len(raws) == 0 {
		return nil
	}
	now := d.parts.Now()
	change := &bot.Change{}
	interrupts := make([]bool, len(raws))
	for i, raw := range raws {
		a, moved, interrupt := d.arrival(raw, now)
		change.Arrive, interrupts[i] = append(change.Arrive, a), interrupt
		if moved != nil {
			change.Facts = append(change.Facts, *moved)
		}
	}
	if _, err := d.parts.Store.Apply(ctx, change); err != nil {
		d.unstored(ctx, raws, err)
		return fmt.Errorf("store %d updates: %w", len(raws), err)
	}
	d.outage.over()
	// What follows are hints: all of it is found in the store too. Repeated updates get them again, because the first time the answer may have been lost.
	express := false
	for i, a := range change.Arrive {
		if a.Express {
			express = true
			continue
		}
		if interrupts[i] {
			express = true
			d.mu.Lock()
			d.breaks[a.Session] = true
			d.mu.Unlock()
		}
		d.enqueue(a.Session)
	}
	if express {
		d.nudge(d.express)
	}
	return nil
}

// arrival decides which way an update takes. It must not fail: what cannot be understood goes the express way and ends as a dead letter.
func (d *Dispatcher) arrival(raw Raw, now time.Time) (a bot.Arrival, moved *bot.Fact, interrupts bool) {
	a = bot.Arrival{Channel: d.opts.Channel, Bot: d.opts.Bot, ID: raw.ID, Raw: raw.Body, At: now, Express: true}
	msg, err := d.decode(raw.Body)
	if err != nil {
		d.observe("update", "undecodable", 0)
		return a, nil, false
	}
	d.observe("update", string(msg.Kind), 0)
	if msg.Kind == bot.Migrated && msg.Target != "" {
		// Known before anything that was written in the new chat is worked on.
		return a, &bot.Fact{Bucket: bot.MovedBucket, Key: d.opts.Channel + "/" + msg.Target, Value: msg.Place.Chat}, false
	}
	if msg.Kind != bot.Text || msg.Caller == "" || !d.addressed(&msg) {
		return a, nil, false
	}
	class := d.class(&msg)
	if class == Overtakes {
		return a, nil, false
	}
	a.Session, a.Express = d.session(&msg), false
	return a, nil, class == Interrupts
}

func (d *Dispatcher) class(msg *bot.Message) Class {
	if msg.Command == "" {
		return Unknown
	}
	return d.parts.Commands.Class(msg.Command)
}

// addressed says whether a message is meant for the bot.
func (d *Dispatcher) addressed(msg *bot.Message) bool {
	return !msg.Place.Group || msg.Addressed || d.parts.Guard.Rules(msg.Place).AnyMessage
}

// session is the key of the conversation a message belongs to.
func (d *Dispatcher) session(msg *bot.Message) string {
	person := ""
	if msg.Place.Group && !d.parts.Guard.Rules(msg.Place).SharedSession {
		person = msg.Person
	}
	return msg.Place.SessionKey(person)
}

// decode guards against a decoder that panics on bytes nobody foresaw.
func (d *Dispatcher) decode(raw []byte) (msg bot.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder panicked: %v", p)
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("update not decodable")
		}
	}()
	return d.parts.Decoder.Decode(raw)
}

// relocate gives a message the chat its session is in now: a group may have got a new id since the message was written. Message ids of the old chat
// mean nothing in the new one.
func relocate(msg *bot.Message, session string) {
	parts := strings.Split(session, "/") // channel, bot, surface, chat, thread, person
	if len(parts) == 6 && parts[3] != msg.Place.Chat {
		msg.Place.Chat, msg.Message = parts[3], ""
	}
}

func ptr[T any](v T) *T { return new(v) }
