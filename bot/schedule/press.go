package schedule

import (
	"context"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Prefix begins the data of the buttons: "sc:VERB:TASK:PAGE".
const Prefix = "sc"

// The verbs of buttons.
const (
	pressList   = "l" // the list, at a page
	pressShow   = "t"
	pressPause  = "p"
	pressResume = "r"
	pressRun    = "n"
	pressAsk    = "d" // ask whether to delete
	pressDelete = "y"
)

// pageSize is how many tasks a page of the list has.
const pageSize = 10

func buttonData(verb, task string, page int) string {
	return strings.Join([]string{Prefix, verb, task, strconv.Itoa(page)}, ":")
}

// Command answers /schedule: in a private chat with the tasks of its person, wherever they run; in a
// group with those of the group.
func (d *Scheduler) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	content, err := d.listPage(ctx, call, 0)
	if err != nil {
		return turn.Effect{}, err
	}
	row := bot.Row{Session: call.Session, Place: call.Message.Place, Purpose: bot.Reply, Content: content}
	if row.Place.Group {
		row.ReplyTo = call.Message.Message
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}, nil
}

// visibleTasks lists the tasks that a list in the place of a call shows.
func (d *Scheduler) visibleTasks(ctx context.Context, call *turn.Call) ([]*task, error) {
	_, all, err := d.readOpenTasks(ctx)
	if err != nil {
		return nil, err
	}
	var list []*task
	for _, t := range byNext(all) {
		if place := call.Message.Place; place.Group && t.session().InChat(place.ChatKey()) ||
			!place.Group && t.belongsTo(call.Message.Caller) {
			list = append(list, t)
		}
	}
	return list, nil
}

// listPage is a page of the list, with a button for each task.
func (d *Scheduler) listPage(ctx context.Context, call *turn.Call, page int) (bot.Content, error) {
	list, err := d.visibleTasks(ctx, call)
	if err != nil {
		return bot.Content{}, err
	}
	msg, w := call.Message, d.deps.Words.At(call.Message.Place)
	pages := (len(list) + pageSize - 1) / pageSize
	page = max(0, min(page, pages-1))
	from := page * pageSize
	list = list[from:min(from+pageSize, len(list))]
	content := bot.Content{Language: msg.Language}
	shown := make([]texts.Task, len(list))
	for i, t := range list {
		_, zone := d.zoneOf(t)
		shown[i] = t.displayed(zone, false)
		label := strconv.Itoa(from+i+1) + ". " + render.Cut(strings.Join(strings.Fields(shown[i].Name), " "), 40)
		content.Buttons = append(content.Buttons, []bot.Button{{
			Label: label,
			Data:  buttonData(pressShow, t.id(), page),
		}})
	}
	newer, older := w.PageButtons(msg.Language)
	content.AddPages(newer, older, page, page+1 < pages, func(n int) string { return buttonData(pressList, "", n) })
	content.Text = w.Schedule(msg.Language, shown, from+1, pages, msg.Place.Group)
	content.Entities = render.Inert(content.Text)
	return content, nil
}

// taskCard shows one task with what its reader can do.
func (d *Scheduler) taskCard(call *turn.Call, t *task, page int, asks bool) bot.Content {
	msg, w := call.Message, d.deps.Words.At(call.Message.Place)
	_, zone := d.zoneOf(t)
	shown := t.displayed(zone, t.belongsTo(msg.Caller))
	content := bot.Content{Language: msg.Language, Text: w.ScheduleTask(msg.Language, &shown)}
	pause, resume, run, remove, yes, back := w.ScheduleButtons(msg.Language)
	button := func(label, verb, style string) bot.Button {
		return bot.Button{Label: label, Data: buttonData(verb, t.id(), page), Style: style}
	}
	if asks {
		content.Text += "\n\n" + w.ScheduleAsks(msg.Language, t.Name)
		content.Buttons = [][]bot.Button{{button(yes, pressDelete, "danger"), button(back, pressShow, "")}}
	} else {
		first := []bot.Button{}
		switch {
		case t.State == texts.TaskOn && !t.Next.IsZero():
			first = append(first, button(pause, pressPause, ""))
		case t.State != texts.TaskOn && t.belongsTo(msg.Caller):
			first = append(first, button(resume, pressResume, ""))
		}
		if t.belongsTo(msg.Caller) && !t.Reminds {
			first = append(first, button(run, pressRun, ""))
		}
		if len(first) > 0 {
			content.Buttons = append(content.Buttons, first)
		}
		content.Buttons = append(content.Buttons, []bot.Button{
			button(remove, pressAsk, "danger"),
			button(back, pressList, ""),
		})
	}
	content.Entities = render.Inert(content.Text)
	return content
}

// Press implements turn.Presser. A task's owner may do everything with it. In groups, an admin of the bot may look at
// it without its text, pause and delete it, but not make it run in somebody else's name.
func (d *Scheduler) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	parts := strings.Split(msg.Data, ":")
	if len(parts) != 4 {
		return call.PopUp(w.ScheduleGone(msg.Language)), nil
	}
	page, err := strconv.Atoi(parts[3])
	if err != nil {
		page = 0
	}
	if parts[1] == pressList {
		content, err := d.listPage(ctx, call, page)
		return call.ShowCard(call.Toast(""), content), err
	}
	list, err := d.visibleTasks(ctx, call)
	if err != nil {
		return turn.Effect{}, err
	}
	for _, t := range list {
		if t.id() == parts[2] {
			return d.pressTask(ctx, call, t, parts[1], page)
		}
	}
	return call.PopUp(w.ScheduleGone(msg.Language)), nil
}

// pressTask does what a button about a task says.
func (d *Scheduler) pressTask(
	ctx context.Context, call *turn.Call, t *task, verb string, page int,
) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	only := verb == pressRun || verb == pressResume
	if !t.belongsTo(msg.Caller) && (only || !call.Admin) {
		return call.PopUp(w.ScheduleNotYours(msg.Language, t.displayed("", false).Owner, only)), nil
	}
	switch verb {
	case pressShow, pressAsk:
		return call.ShowCard(call.Toast(""), d.taskCard(call, t, page, verb == pressAsk)), nil
	case pressPause:
		if t.State == texts.TaskOn {
			t.State = texts.TaskPaused
		}
		return d.storeAndShow(call, t, page, "")
	case pressResume:
		if err := d.resumeTask(t); err != nil {
			return turn.Effect{}, err
		}
		return d.storeAndShow(call, t, page, "")
	case pressRun:
		if t.Reminds { // it was a task when the button was shown
			return call.ShowCard(call.Toast(""), d.taskCard(call, t, page, false)), nil
		}
		return d.runNow(ctx, call, t, page)
	case pressDelete:
		content := bot.Content{Language: msg.Language, Text: w.ScheduleDeleted(msg.Language, t.Name)}
		content.Entities = render.Inert(content.Text)
		e := call.ShowCard(call.Toast(""), content)
		e.Change.Facts = []bot.Fact{t.deletingFact(), d.revisionFact()}
		return d.forgetOnceStored(e), nil
	default:
		return call.PopUp(w.ScheduleGone(msg.Language)), nil
	}
}

// resumeTask switches a task on again. What it missed meanwhile is not made up for, unless it runs once.
func (d *Scheduler) resumeTask(t *task) error {
	if t.State == texts.TaskOn {
		return nil
	}
	t.State, t.Fails = texts.TaskOn, 0
	now := d.deps.Now()
	if t.Cron == "" {
		if t.Next.IsZero() && t.Run == "" {
			t.Next = now
		}
		return nil
	}
	zone, _ := d.zoneOf(t)
	var err error
	t.Next, err = t.nextRun(now, zone)
	return err
}

// runNow begins a run at once, besides those at its times.
func (d *Scheduler) runNow(ctx context.Context, call *turn.Call, t *task, page int) (turn.Effect, error) {
	if t.Run != "" {
		waits, err := d.runIsOpen(ctx, t)
		if err != nil {
			return turn.Effect{}, err
		}
		if waits {
			return call.PopUp(d.deps.Words.ScheduleBusy(call.Message.Language)), nil
		}
	}
	admitted, err := d.isAdmitted(ctx, t, d.deps.Now())
	if err != nil {
		return turn.Effect{}, err
	}
	if !admitted {
		t.State = texts.TaskRevoked
		return d.storeAndShow(call, t, page, "")
	}
	next := t.Next
	t.Next = next.Truncate(0)
	change, err := d.beginRun(t, d.deps.Now())
	if err != nil {
		return turn.Effect{}, err
	}
	if t.Cron != "" && next.After(d.deps.Now()) {
		t.Next = next
	}
	if t.Cron == "" {
		t.State = texts.TaskOn
	}
	e, err := d.storeAndShow(call, t, page, d.deps.Words.ScheduleStarted(call.Message.Language))
	e.Change.Arrive = change.Arrive
	e.Change.Send = append(change.Send, e.Change.Send...)
	e.Wake = []bot.SessionKey{t.session()}
	return e, err
}

// storeAndShow stores a task as it is now, and shows it.
func (d *Scheduler) storeAndShow(call *turn.Call, t *task, page int, toast string) (turn.Effect, error) {
	fact, err := t.storedFact()
	if err != nil {
		return turn.Effect{}, err
	}
	e := call.ShowCard(call.Toast(toast), d.taskCard(call, t, page, false))
	if fact.Value != t.raw {
		e.Change.Facts = []bot.Fact{fact, d.revisionFact()}
	}
	return d.forgetOnceStored(e), nil
}

// forgetOnceStored makes everything be read again once an Effect is stored.
func (d *Scheduler) forgetOnceStored(e turn.Effect) turn.Effect {
	e.Then = func(context.Context, *bot.Applied) (turn.Effect, error) {
		d.Forget()
		return turn.Effect{}, nil
	}
	return e
}

var _ turn.Presser = (*Scheduler)(nil)
