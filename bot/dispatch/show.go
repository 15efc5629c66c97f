package dispatch

// What people see of a turn while it runs.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

type silent struct{}

func (silent) Emit(context.Context, agent.Event) {}

// watch starts showing the turn. The returned function stops that, and waits until nothing more can be shown.
func (w *work) watch(ctx context.Context) (agent.Sink, func()) {
	w.living = w.d.life.begun(w.lane.Session)
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
	return fmt.Sprintf("%s/%s/%d", what, w.lane.Session, tail.StateAt(tail.Last()).Began)
}

// notices returns the rows that tell the person about the side results of a call.
func (w *work) notices(entries []journal.Entry) []bot.Row {
	if w.quiet() {
		return nil
	}
	var rows []bot.Row
	for _, e := range entries {
		if e.Shortens() {
			rows = append(rows, w.row(
				bot.Notice, bot.Content{Text: w.d.parts.Words.Summed(w.msg.Language)}, w.once("summed"),
			))
		}
		for i, text := range e.Notices {
			rows = append(rows,
				w.row(bot.Notice, bot.Content{Text: text}, "note/"+w.turn.ID+"/"+e.Call+"/"+strconv.Itoa(i)))
		}
		if e.Kind != journal.ResultEntry {
			continue
		}
		for _, a := range groupIntoAlbums(e.Parts) {
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

// album is some files of one result that are shown together; often there is only one.
type album struct {
	first int // index of the first one in the result
	parts []llm.Part
	bytes int64
}

// groupIntoAlbums groups the files of a result. Only what a channel shows alike goes together: pictures, sounds, or documents,
// in the order of the result and within the limits of an album.
func groupIntoAlbums(parts []llm.Part) []album {
	var list []album
	for i := range parts {
		p := &parts[i]
		if n := len(list) - 1; n >= 0 && list[n].takes(p) {
			list[n].parts, list[n].bytes = append(list[n].parts, *p), list[n].bytes+p.Size
			continue
		}
		list = append(list, album{first: i, parts: []llm.Part{*p}, bytes: p.Size})
	}
	return list
}

// takes reports whether a file can be added to an album.
func (a *album) takes(p *llm.Part) bool {
	last, next := outgoingFile(&a.parts[0]), outgoingFile(p)
	return last.Hash != "" && next.Hash != "" && last.Media() == next.Media() && p.Outgoing == a.parts[0].Outgoing &&
		len(a.parts) < bot.MaxAlbum && a.bytes+p.Size <= bot.MaxAlbumBytes
}

func outgoingFile(p *llm.Part) bot.File {
	return bot.File{Name: p.Name, Type: p.Type, Hash: p.Hash, Size: p.Size}
}

// made shows files that a tool has made or sends, or says that one could not be kept. What is sent comes with its
// caption only.
func (w *work) made(e *journal.Entry, a album) bot.Content {
	first := &a.parts[0]
	if first.Hash == "" {
		return bot.Content{Text: w.d.parts.Words.NotKept(w.msg.Language, e.Tool, first.Name)}
	}
	names := make([]string, len(a.parts))
	var captions []string
	var content bot.Content
	for i := range a.parts {
		f := outgoingFile(&a.parts[i])
		if names[i] = f.Name; i == 0 {
			content.File = &f
		} else {
			content.More = append(content.More, f)
		}
		if text := a.parts[i].Text; text != "" {
			captions = append(captions, text)
		}
	}
	content.Text = strings.Join(captions, "\n")
	if content.Text == "" && !first.Outgoing {
		content.Text = e.Tool + " · " + strings.Join(names, ", ")
	}
	return content
}

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
		one.Entities = entitiesWithin(one.Entities, render.Length(text))
		one.Text = text + "\n\n" + note
	}
	return []bot.Content{one}
}

// entitiesWithin returns the entities that lie within the first units of a text.
func entitiesWithin(list []render.Entity, units int) []render.Entity {
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

// isUnsaidRow reports whether a row is not sent, because in a chat of a business account only answers are.
func isUnsaidRow(row bot.Row) bool { return row.Place.Business() != "" && row.Purpose != bot.Final }

// asked are questions of the turn as they are put to people.
func (w *work) asked(questions []tools.Question, stats journal.Stats) turn.Asked {
	asked := turn.Asked{
		Session: w.lane.Session, Turn: w.turn.ID, Place: w.msg.Place, Caller: w.msg.Caller, Name: w.msg.Signature(),
		Title: w.msg.Title, Language: w.msg.Language, Questions: questions, Stats: stats,
	}
	if w.msg.Place.Group {
		asked.ReplyTo = w.msg.Message
	}
	return asked
}
