package dispatch

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// Runs follows the turns that begin by themselves in the name of their owner: the runs of scheduled tasks
// (bot/schedule), and those that calls of hooks begin (bot/hook).
type Runs interface {
	// Ended returns what is stored with the end of a run. outcome is one of the words below, or the
	// reason of the turn's EndEntry.
	Ended(a *bot.Arrival, session bot.SessionKey, outcome string) []bot.Fact
	// Settle says that such an end is stored. It must not block.
	Settle()
	// Left returns what is stored when the bot was removed from a chat. key is unique to that.
	Left(ctx context.Context, place bot.Place, key string) (turn.Effect, error)
	// Heading is the key of the row that says what began the turn of an arrival: the answer replies to it.
	Heading(arrival string) string
}

// The outcomes of runs.
const (
	runAnswered = "answered"
	runUnpaid   = "unpaid"  // a quota refused it
	runRefused  = "refused" // its owner is not admitted
)

// runsOf returns what follows the turn of an arrival; nil = somebody has sent it.
func (d *Dispatcher) runsOf(a *bot.Arrival) Runs { return d.parts.Runs[a.Source] }

// runEnds adds what is stored with the end of a run to a Change.
func (d *Dispatcher) runEnds(a *bot.Arrival, change *bot.Change, outcome string) {
	if runs := d.runsOf(a); runs != nil {
		change.Facts = append(change.Facts, runs.Ended(a, a.Session, outcome)...)
	}
}

// runEnded says that the end of a run is stored.
func (d *Dispatcher) runEnded(a *bot.Arrival) {
	if runs := d.runsOf(a); runs != nil {
		runs.Settle()
	}
}

// refuseRun ends a run whose owner is not admitted any more. What began it tells the admins, and nobody else.
func (d *Dispatcher) refuseRun(ctx context.Context, a *bot.Arrival) error {
	defer d.runEnded(a)
	return d.storeEffectInLane(ctx, a, func() (e turn.Effect, err error) {
		d.runEnds(a, &e.Change, runRefused)
		return e, nil
	})
}

// headingRows is how many of the newest rows of a session are searched for the heading of a run.
const headingRows = 50

// heading returns what the answer of a run replies to: the row that says what began it. "" = this is no such run.
func (w *work) heading(ctx context.Context) string {
	runs := w.d.runsOf(w.arrival)
	if runs == nil {
		return ""
	}
	rows, err := w.d.parts.Store.Rows(ctx, w.lane.Session, headingRows)
	if err != nil {
		return "" // the answer goes out without being a reply
	}
	key := runs.Heading(w.arrival.ID)
	if i := slices.IndexFunc(rows, func(r bot.Row) bool { return r.Key == key }); i >= 0 {
		return bot.ReplyToRow(rows[i].ID)
	}
	return ""
}

// runConcludes adds to the Change of an outcome what the schedule, or what else began the turn, has to know of it, and makes the answer a reply to
// what began it.
func (w *work) runConcludes(ctx context.Context, change *bot.Change, out agent.Outcome) {
	if w.d.runsOf(w.arrival) == nil {
		return
	}
	if heading := w.heading(ctx); heading != "" {
		if i := slices.IndexFunc(change.Send, func(r bot.Row) bool {
			return r.Purpose == bot.Final || r.Purpose == bot.Question
		}); i >= 0 {
			change.Send[i].ReplyTo = heading
		}
	}
	switch out.Kind {
	case agent.Answered:
		w.d.runEnds(w.arrival, change, runAnswered)
	case agent.Ended:
		w.d.runEnds(w.arrival, change, out.Reason)
	}
}

// Speaker returns the message that the turn in progress of a session works on, in the chat that the session is in now;
// bot.ErrNotFound if there is none.
func (d *Dispatcher) Speaker(ctx context.Context, session bot.SessionKey) (bot.Message, error) {
	lane, err := d.parts.Store.Lane(ctx, session)
	if err != nil {
		return bot.Message{}, err
	}
	waiting, err := d.parts.Store.Next(ctx, session, 0)
	if err != nil {
		return bot.Message{}, err
	}
	i := slices.IndexFunc(waiting, func(a bot.Arrival) bool { return a.Seq == lane.Arrival })
	if i < 0 || lane.Turn == "" {
		return bot.Message{}, fmt.Errorf("turn of %s: %w", session, bot.ErrNotFound)
	}
	msg, err := d.decodeArrival(&waiting[i])
	if err != nil {
		return msg, err
	}
	relocateMessage(&msg, session)
	return msg, nil
}

// Session returns the conversation that a message belongs to.
func (d *Dispatcher) Session(msg *bot.Message) bot.SessionKey { return d.session(msg) }
