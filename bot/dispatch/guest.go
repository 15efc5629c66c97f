package dispatch

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// answerFirst has a guest's question answered with a placeholder as soon as its turn is stored: the channel accepts the
// answer for a short time only, and edits of it for as long as a turn takes. If the answer is there before the
// placeholder has been sent, the outbox sends it instead.
func (d *Dispatcher) answerFirst(b *beginning, msg *bot.Message) {
	turn, session := b.entry.Turn, b.change.Claim.Session
	row := d.reply(msg, bot.Placeholder, d.parts.Words.Placeholder(msg.Language), "live/"+turn)
	row.Session, row.Turn = session, turn
	b.change.Send, b.change.PlaceholderOf = []bot.Row{row}, session
}

// only returns the one content that a guest may send. What does not fit into it is left out, and the person is told so.
func (w *work) only(contents []bot.Content) []bot.Content {
	if !w.msg.Place.Guest() || len(contents) == 0 {
		return contents
	}
	one := contents[0]
	one.Buttons = nil // a press of one would not say which conversation it belongs to
	if len(contents) > 1 {
		note := w.d.parts.Words.OnlyOne(w.msg.Language)
		text := render.Cut(one.Text, render.MaxLength-render.Length(note)-2)
		one.Entities = inside(one.Entities, render.Length(text))
		one.Text = text + "\n\n" + note
	}
	return []bot.Content{one}
}

// inside returns the entities that lie within the first units of a text.
func inside(list []render.Entity, units int) []render.Entity {
	var kept []render.Entity
	for _, e := range list {
		if e.Offset+e.Length < units { // the last letter may be the sign of a cut
			kept = append(kept, e)
		}
	}
	return kept
}

// quiet reports whether nothing is said in a chat but the answer: a guest has one message, and in a chat of a business
// account everything is said in the owner's name.
func (w *work) quiet() bool { return !w.msg.Place.Ordinary() }

// unsaid reports whether a row is not sent, because in a chat of a business account only answers are.
func unsaid(row bot.Row) bool { return row.Place.Business() != "" && row.Purpose != bot.Final }

// expressConnection records that the bot was connected to a business account or disconnected, and tells its owner.
func (d *Dispatcher) expressConnection(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	return d.refuse(ctx, a, msg, verdict)
}
