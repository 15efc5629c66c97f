package schedule

import (
	"cmp"
	"context"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Left returns what is stored when the bot was removed from a chat: the tasks there are switched off, so that they cost
// nothing, and the owners of those in a group are told in private. key distinguishes this removal from others. Then
// makes the tasks be read again.
func (d *Scheduler) Left(ctx context.Context, place bot.Place, key string) (turn.Effect, error) {
	_, list, err := d.readOpenTasks(ctx)
	if err != nil {
		return turn.Effect{}, err
	}
	var e turn.Effect
	byOwner := map[string][]*task{}
	var owners []string
	for _, t := range byNext(list) {
		if !t.session().InChat(place.ChatKey()) || t.State != texts.TaskOn {
			continue
		}
		t.State, t.Left = texts.TaskLeft, t.Place.Chat
		fact, err := t.storedFact()
		if err != nil {
			return turn.Effect{}, err
		}
		e.Change.Facts = append(e.Change.Facts, fact)
		if !slices.Contains(owners, t.Owner.Person) {
			owners = append(owners, t.Owner.Person)
		}
		byOwner[t.Owner.Person] = append(byOwner[t.Owner.Person], t)
	}
	if len(e.Change.Facts) == 0 {
		return e, nil
	}
	e.Change.Facts = append(e.Change.Facts, d.revisionFact())
	for _, owner := range owners {
		e.Change.Send = append(e.Change.Send, d.toOwner(byOwner[owner], "schedule/left/"+key+"/"+owner)...)
	}
	return d.forgetOnceStored(e), nil
}

// leaveChat switches a task off whose run has found its chat gone, and tells its owner, unless Left has done so.
func (d *Scheduler) leaveChat(t *task, key string) []bot.Row {
	if t.State == texts.TaskLeft {
		return nil
	}
	t.State, t.Left = texts.TaskLeft, t.Place.Chat
	return d.toOwner([]*task{t}, key)
}

// toOwner tells the owner of tasks in a group, in private, that the bot was removed from it. The owner of tasks in a
// private chat that is gone cannot be told.
func (d *Scheduler) toOwner(list []*task, key string) []bot.Row {
	t := list[0]
	if !t.Place.Group {
		return nil
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	text := d.deps.Words.ScheduleLeft(d.languageOf(t), cmp.Or(t.Title, t.Place.Chat), names)
	return []bot.Row{{
		Place: d.deps.Private(t.Owner.Person), Purpose: bot.Reply, Key: key,
		Content: bot.Content{Text: text, Entities: render.Inert(text), Language: d.languageOf(t)},
	}}
}
