package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// againPrefix begins the data of the button that runs a changed message again: PREFIX:TURN:PERSON, where TURN is a hash
// of the turn's id. Nothing in it is trusted: it only names what the person who presses it may do anyway.
const againPrefix = "e1"

// Editing are the sentences about messages that were changed.
type Editing interface { //nolint:interfacebloat // one source of sentences
	// EditedLate says that a message was changed after it was answered.
	EditedLate(language string) string
	// AgainButton labels the button below.
	AgainButton(language string) string
	// AgainRuns says that the changed message is being worked on.
	AgainRuns(language string) string
	// AgainNotYours says that the button is somebody else's.
	AgainNotYours(language string) string
	// AgainLost says that the message is no longer there.
	AgainLost(language string) string
	// AgainAlready says that the button was pressed before.
	AgainAlready(language string) string
}

func againHash(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return hex.EncodeToString(sum[:8])
}

// againID is the id of the arrival that runs the message of a turn again: there is one, however often somebody presses.
func againID(hash string) string { return "again-" + hash }

// offer sends the button for a message that was changed after its turn, once for each turn.
func (d *Dispatcher) offer(session bot.SessionKey, said *journal.Entry, a *bot.Arrival, msg *bot.Message) turn.Effect {
	hash := againHash(said.Turn)
	row := d.reply(msg, bot.Notice, d.parts.Words.EditedLate(msg.Language), againID(hash))
	row.Session, row.Turn, row.ReplyTo = session, said.Turn, msg.Message
	row.Content.Buttons = [][]bot.Button{{{
		Label: d.parts.Words.AgainButton(msg.Language), Data: strings.Join([]string{againPrefix, hash, msg.Person}, ":"),
	}}}
	e := turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}
	if a != nil {
		e.Change.Facts = []bot.Fact{d.newest(msg, a)}
	}
	return e
}

// editedLate handles an edit for a turn that ended before it could read it.
func (d *Dispatcher) editedLate(ctx context.Context, t *task) bool {
	return d.settled(ctx, t.arrival, d.effect(ctx, t.arrival, func() (e turn.Effect, err error) {
		if !t.verdict.OK {
			return e, nil
		}
		said, _, err := d.saidIn(ctx, t.arrival.Session, t.msg)
		if err != nil || said == nil {
			return e, err
		}
		return d.offer(t.arrival.Session, said, nil, t.msg), nil
	}))
}

// pressAgain handles the button: the message is answered once more, as it reads now, by a turn of its own.
func (d *Dispatcher) pressAgain(ctx context.Context, call *turn.Call) (e turn.Effect, err error) {
	msg, w := call.Message, d.parts.Words
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	say := func(text string) (turn.Effect, error) {
		toast.Alert, toast.Content.Text = true, text
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	}
	hash, person, _ := strings.Cut(strings.TrimPrefix(msg.Data, againPrefix+":"), ":")
	if person != msg.Person || msg.Caller == "" {
		return say(w.AgainNotYours(msg.Language))
	}
	switch _, err := d.parts.Store.ArrivalOf(ctx, d.opts.Channel, d.opts.Bot, againID(hash)); {
	case err == nil:
		return say(w.AgainAlready(msg.Language))
	case !errors.Is(err, bot.ErrNotFound):
		return e, err
	}
	tail, err := d.parts.Store.Tail(ctx, call.Session, editRoom)
	if err != nil {
		return e, err
	}
	said := lastSaid(tail.Entries, func(e *journal.Entry) bool {
		return e.Caller == msg.Caller && len(e.Heard) > 0 && againHash(e.Turn) == hash
	})
	if said == nil {
		return say(w.AgainLost(msg.Language))
	}
	next, err := d.composed(ctx, msg.Place, said.Heard, nil)
	if err != nil {
		return e, err
	}
	if next == nil {
		return say(w.AgainLost(msg.Language))
	}
	next.ID, next.Addressed, next.At, next.Language = againID(hash), true, d.parts.Now(), msg.Language
	raw, err := bot.EncodeMessage(next)
	if err != nil {
		return e, poison{err}
	}
	e.Change.Arrive = []bot.Arrival{{
		Channel: d.opts.Channel, Bot: d.opts.Bot, ID: next.ID, Source: bot.FromAgain, Session: call.Session, Raw: raw, At: next.At,
	}}
	e.Change.Send = []bot.Row{toast}
	if msg.Message != "" {
		e.Change.Send = append(e.Change.Send, bot.Row{
			Session: call.Session, Place: msg.Place, Purpose: bot.Record, Edit: msg.Message,
			Content: bot.Content{Text: w.AgainRuns(msg.Language), Language: msg.Language},
		})
	}
	e.Wake = []bot.SessionKey{call.Session}
	return e, nil
}
