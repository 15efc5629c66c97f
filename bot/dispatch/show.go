package dispatch

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

type silent struct{}

func (silent) Emit(context.Context, agent.Event) {}

// watch starts showing the turn. The returned function stops that, and waits until nothing more can be shown.
func (w *work) watch(ctx context.Context) (agent.Sink, func()) {
	if w.d.parts.Progress == nil {
		return silent{}, func() {}
	}
	watched := turn.Watched{
		Place: w.msg.Place, Turn: w.turn.ID, Draft: draftOf(w.turn.ID), Language: w.msg.Language,
		Gone: func(asked time.Time) { w.d.Gone(w.msg.Place, asked) },
	}
	if w.msg.Place.Business() == "" { // the owner would not write and rewrite a message either
		watched.Placeholder, watched.Buttons = w.placeholder, w.stopButtons()
	}
	p := w.d.parts.Progress(watched)
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

// stopButtons are those below the message that grows. A guest has none: a press would not say which conversation it
// belongs to.
func (w *work) stopButtons() [][]bot.Button {
	if w.d.parts.Stop == nil || w.quiet() {
		return nil
	}
	return w.d.parts.Stop(w.msg.Language, w.turn.ID)
}

// placeholder creates the message that grows into the answer. It returns its id once it is delivered.
func (w *work) placeholder(ctx context.Context) (string, error) {
	if w.live != 0 {
		row, err := w.d.parts.Store.Row(ctx, w.live)
		if err != nil {
			return "", err
		}
		return row.Message, nil
	}
	first := bot.Content{Text: w.d.parts.Words.Placeholder(w.msg.Language), Buttons: w.stopButtons()}
	row := w.row(bot.Placeholder, first, "live/"+w.turn.ID)
	w.addressed(&row)
	if heading := w.heading(ctx); heading != "" {
		row.ReplyTo = heading
	}
	w.unsure = true
	applied, err := w.d.parts.Store.Apply(ctx, &bot.Change{
		Lease: &w.lease, Send: []bot.Row{row}, Lanes: []bot.LaneUpdate{{Session: w.lane.Session}},
		PlaceholderOf: w.lane.Session,
	})
	if err == nil {
		w.live, w.unsure = applied.Rows[0], false
		w.d.parts.Outbox.Wake(w.msg.Place)
	}
	return "", err
}

// once returns the key of a row that is sent once in a conversation.
func (w *work) once(what string) string {
	tail := w.journal.tail
	return fmt.Sprintf("%s/%s/%d", what, w.lane.Session, tail.Standing(tail.Last()).Began)
}

// notices returns the rows that tell the person about the side results of a call.
func (w *work) notices(entries []journal.Entry) []bot.Row {
	if w.quiet() {
		return nil
	}
	var rows []bot.Row
	for _, e := range entries {
		if e.Shortens() {
			rows = append(rows, w.row(bot.Notice, bot.Content{Text: w.d.parts.Words.Summed(w.msg.Language)}, w.once("summed")))
		}
		for i, text := range e.Notices {
			rows = append(rows,
				w.row(bot.Notice, bot.Content{Text: text}, "note/"+w.turn.ID+"/"+e.Call+"/"+strconv.Itoa(i)))
		}
		if e.Kind != journal.ResultEntry {
			continue
		}
		for _, a := range albums(e.Parts) {
			purpose := bot.Notice
			if e.Parts[a.first].Outgoing {
				purpose = bot.Reply // it comes before the answer that speaks of it
			}
			rows = append(rows,
				w.row(purpose, w.made(&e, a), "file/"+w.turn.ID+"/"+e.Call+"/"+strconv.Itoa(a.first)))
		}
	}
	return rows
}
