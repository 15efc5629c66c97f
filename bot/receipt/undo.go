package receipt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/undo"
)

// onServer is why a call of a server's tool cannot be undone.
const onServer = "server"

// describeChanges says in words what a turn has changed, and what of it cannot be undone.
func (d *Receipts) describeChanges(a *about) texts.ReceiptChanges {
	c := inWords(&a.changes, d.callNames(a.entries))
	if d.deps.Files == nil {
		return c
	}
	reads := map[string]bool{}
	for i := range a.entries {
		e := &a.entries[i]
		for _, u := range e.Uses {
			reads[u.Call] = u.ReadOnly
		}
		// What a server does is not known here.
		if e.Kind == journal.ResultEntry && e.Ran && !reads[e.Call] && strings.Contains(e.Tool, ":") {
			c.Beyond = append(c.Beyond, texts.ReceiptStays{Name: e.Tool, Why: onServer})
		}
	}
	return c
}

// inWords says in words what is known of changes; calls are the names of calls by their ids.
func inWords(r *undo.Report, calls map[string]string) texts.ReceiptChanges {
	var c texts.ReceiptChanges
	for _, f := range r.Files {
		back := r.Undone != nil && f.State == undo.Done
		switch {
		case back && f.What == undo.Made:
			c.Removed = append(c.Removed, f.Path)
		case back:
			c.Restored = append(c.Restored, f.Path)
		case f.What == undo.Made:
			c.Made = append(c.Made, f.Path)
		case f.What == undo.Deleted:
			c.Deleted = append(c.Deleted, f.Path)
		default:
			c.Edited = append(c.Edited, f.Path)
		}
		if f.State != undo.Ready && f.State != undo.Done {
			c.Stays = append(c.Stays, texts.ReceiptStays{Name: f.Path, Why: f.State})
		}
	}
	for _, call := range r.Calls {
		name := cmp.Or(calls[call.ID], call.Tool)
		if call.Problem != "" {
			c.Beyond = append(c.Beyond, texts.ReceiptStays{Name: name, Why: call.Problem})
		}
		for _, b := range call.Beyond {
			c.Beyond = append(c.Beyond, texts.ReceiptStays{Name: name, Why: string(b)})
		}
	}
	if r.Undone != nil {
		c.UndoneBy, c.UndoneAt = r.Undone.Name, r.Undone.At
		if c.UndoneBy == "" {
			_, c.UndoneBy, _ = strings.Cut(r.Undone.By, ":")
		}
	}
	return c
}

// mostUndone is how many turns, the newest, /undo looks at for one that can be undone.
const mostUndone = 20

// offerUndo answers /undo: it asks whether to undo the newest answer to the person that has changed files which can be
// put back.
func (d *Receipts) offerUndo(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	if d.deps.Files == nil {
		return call.ReplyText(w.UndoUnkept(msg.Language)), nil
	}
	tail, err := d.deps.Store.Tail(ctx, call.Session, rooms[len(rooms)-1])
	if err != nil {
		return turn.Effect{}, err
	}
	looked := 0
	for i := len(tail.Entries) - 1; i >= 0 && looked < mostUndone; i-- {
		e := &tail.Entries[i]
		if e.Kind != journal.UserEntry || e.Child != "" || e.Joins != "" || e.Caller != msg.Caller {
			continue
		}
		looked++
		t := target{call.Session.Thread(), call.Session.Person(), undo.Key(e.Turn)}
		a, err := d.findTurn(ctx, msg.Place, t)
		if err != nil {
			return turn.Effect{}, err
		}
		if a.changes.Count(undo.Ready) > 0 {
			return call.Reply(d.undoQuestion(msg, &a)), nil
		}
	}
	return call.ReplyText(w.UndoNone(msg.Language)), nil
}

// askToUndo asks once more before files are put back.
func (d *Receipts) askToUndo(ctx context.Context, call *turn.Call, a *about) (turn.Effect, error) {
	switch {
	case a.changes.Count(undo.Ready) > 0:
		return showMessage(call, d.undoQuestion(call.Message, a), true), nil
	case a.changes.Undone == nil:
		return call.PopUp(d.deps.Words.UndoNothing(call.Message.Language)), nil
	}
	content, err := d.receiptMessage(ctx, call.Message, a, false)
	return d.undoneBefore(call, content), err
}

// undoneBefore says that files were put back before. The message of the button, which is older, gets this content; what
// one person alone sees cannot be changed.
func (d *Receipts) undoneBefore(call *turn.Call, content bot.Content) turn.Effect {
	e := call.PopUp(d.deps.Words.UndoAgain(call.Message.Language))
	if shown := showMessage(call, content, true).Change.Send[1]; shown.Edit != "" {
		e.Change.Send = append(e.Change.Send, shown)
	}
	return e
}

// undoQuestion asks whether to put files back.
func (d *Receipts) undoQuestion(msg *bot.Message, a *about) bot.Content {
	w, changes := d.deps.Words, d.describeChanges(a)
	text, entities := render.Marked(w.UndoAsk(msg.Language, &changes))
	yes, no := w.UndoButtons(msg.Language, &changes)
	return bot.Content{
		Text: text, Entities: entities, Language: msg.Language,
		Buttons: [][]bot.Button{{
			{Label: yes, Data: a.buttonData(pressDo), Style: "danger"}, {Label: no, Data: a.buttonData(pressBack)},
		}},
	}
}

// undoTurn puts files back. If the process dies in between, the press is handled again: what is back already stays, the
// rest follows, and then it is recorded.
func (d *Receipts) undoTurn(ctx context.Context, call *turn.Call, a *about) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	if !a.kept {
		return call.PopUp(w.UndoNothing(msg.Language)), nil
	}
	lane, err := d.deps.Store.Lane(ctx, a.session)
	if err != nil {
		return turn.Effect{}, err
	}
	if lane.Turn != "" {
		return d.undoLater(ctx, call, &lane)
	}
	report, err := d.deps.Files.Undo(ctx, a.workspace, a.turn, undo.Undone{ID: msg.ID, By: msg.Caller, Name: msg.Signature()})
	switch {
	case errors.Is(err, undo.ErrBusy):
		return call.PopUp(w.UndoBusy(msg.Language)), nil
	case errors.Is(err, fs.ErrNotExist): // it was too old
		return call.PopUp(w.ReceiptGone(msg.Language)), nil
	case err != nil:
		return turn.Effect{}, err
	}
	a.changes = report
	changes := d.describeChanges(a)
	text := w.At(msg.Place).Undone(msg.Language, &changes)
	if report.Undone == nil {
		text = w.UndoNothing(msg.Language) + "\n" + text
	}
	content := bot.Content{Language: msg.Language}
	content.Text, content.Entities = render.Marked(text)
	if report.Undone != nil && report.Undone.ID != msg.ID {
		return d.undoneBefore(call, content), nil
	}
	e := showMessage(call, content, true)
	if report.Undone == nil {
		return e, nil
	}
	d.deps.Changed(ctx, a.session, a.began)
	e.Change.Facts = append(d.deps.Line(Event{
		ID: msg.ID, Place: msg.Place, Session: a.session, Turn: a.turn, By: msg.Caller, Files: report.Files,
	}), d.deps.Tell(a.session, "undo-"+msg.ID, toldModel(report.Files)))
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		d.deps.Told(ctx, a.session)
		return turn.Effect{}, nil
	}
	return e, nil
}

// undoLater says why files cannot be put back while a turn is in progress: it runs, or waits for people.
func (d *Receipts) undoLater(ctx context.Context, call *turn.Call, lane *bot.Lane) (turn.Effect, error) {
	w, language := d.deps.Words, call.Message.Language
	if lane.State == bot.Parked {
		open, err := d.deps.Store.OpenApprovals(ctx, lane.Session)
		if err != nil {
			return turn.Effect{}, err
		}
		if len(open) > 0 {
			return call.PopUp(w.UndoAsked(language, approval.IsHidden(&open[0]))), nil
		}
	}
	return call.PopUp(w.UndoBusy(language)), nil
}

// mostTold is how many files the model is told of.
const mostTold = 20

// toldModel tells the model which files are as before an answer.
func toldModel(files []undo.File) string {
	text := func(done bool) string {
		var list []string
		for _, f := range files {
			if (f.State == undo.Done) == done {
				list = append(list, fmt.Sprintf("%q", f.Path))
			}
		}
		if more := len(list) - mostTold; more > 0 {
			list = append(slices.Clip(list[:mostTold]), fmt.Sprintf("%d more", more))
		}
		return strings.Join(list, ", ")
	}
	said := "[The user has undone the file changes of an earlier answer. These are as they were before it: " +
		text(true) + "."
	if kept := text(false); kept != "" {
		said += " These were not put back: " + kept + "."
	}
	return said + "]"
}
