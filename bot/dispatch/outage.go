package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

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
				Place: place, Purpose: bot.Notice, Content: bot.Content{Text: d.parts.Words.OutOfOrder("", why.Advice())},
			})
		}
	}
	for _, raw := range raws {
		a := d.received(raw)
		msg, err := d.decode(&a)
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
