package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
)

// fireTask begins the turn of a task that is due, in one Change that also says when it is due next. After an outage
// that is one turn, however often the task was due meanwhile.
func (d *Scheduler) fireTask(ctx context.Context, t task) error {
	now := d.deps.Now()
	if t.Run != "" && !t.Reminds {
		waits, err := d.runIsOpen(ctx, &t)
		if err != nil {
			return err
		}
		if waits {
			return d.skipRun(ctx, t, now)
		}
		if err := d.closeRun(ctx, &t); err != nil || !t.isOn() || t.Next.After(now) {
			return err
		}
	}
	admitted, err := d.isAdmitted(ctx, &t, now)
	if err != nil {
		return err
	}
	if !admitted {
		return d.revokeTask(ctx, t)
	}
	if t.Reminds {
		return d.remindOwner(ctx, &t, now)
	}
	change, err := d.beginRun(&t, now)
	if err != nil {
		return err
	}
	return d.applyTask(ctx, &t, change)
}

// isAdmitted reports whether the owner of a task may still talk where it runs. Whoever has left a group has no turns
// there any more; a task of the configuration belongs to whom the operator says.
func (d *Scheduler) isAdmitted(ctx context.Context, t *task, now time.Time) (bool, error) {
	verdict, err := d.deps.Guard.Admit(ctx, t.message(now))
	if err != nil {
		return false, fmt.Errorf("check who may talk: %w", err)
	}
	if !verdict.OK || !t.Place.Group || t.Config || d.deps.Gone == nil {
		return verdict.OK, nil
	}
	gone, err := d.deps.Gone(ctx, t.Place, t.Owner.Person)
	if err != nil {
		return false, fmt.Errorf("check who is in a group: %w", err)
	}
	return !gone, nil
}

// beginRun returns the Change that begins a run now, and advances the task.
func (d *Scheduler) beginRun(t *task, now time.Time) (*bot.Change, error) {
	late := t.lateSince(now)
	zone, _ := d.zoneOf(t)
	next, err := t.nextRun(now, zone)
	if err != nil {
		return nil, err
	}
	t.Runs++
	t.Next, t.Run = next, runID(t.id(), t.Runs)
	msg := t.message(now)
	raw, err := bot.EncodeMessage(msg)
	if err != nil {
		return nil, err
	}
	change := &bot.Change{Arrive: []bot.Arrival{{
		Channel: d.deps.Channel,
		Bot:     d.deps.Bot,
		ID:      t.Run,
		Source:  bot.FromSchedule,
		Session: t.session(),
		Raw:     raw,
		At:      now,
	}}}
	words := d.deps.Words.At(t.Place)
	change.Send = []bot.Row{d.rowFor(t, words.Scheduled(d.languageOf(t), t.Name, late), d.Heading(t.Run))}
	return change, nil
}

// lateSince returns when a task was due, if people are to be told; zero = it is on time.
func (t *task) lateSince(now time.Time) time.Time {
	if !t.Next.IsZero() && now.Sub(t.Next) > soon {
		return t.Next
	}
	return time.Time{}
}

// remindOwner sends a reminder that is due, and deletes it if it was for once. It has no turn, so that it needs neither
// a model nor a quota and waits for nothing that runs; the model is told of it at its next turn.
func (d *Scheduler) remindOwner(ctx context.Context, t *task, now time.Time) error {
	content := d.reminderContent(t, now)
	zone, _ := d.zoneOf(t)
	next, err := t.nextRun(now, zone)
	if err != nil {
		return err
	}
	t.Runs++
	t.Next = next
	run := runID(t.id(), t.Runs)
	row := d.rowFor(t, "", d.Heading(run))
	row.Content = content
	told := fmt.Sprintf("[the person was sent the reminder %q that they had scheduled: %s]", t.Name, t.Text)
	news := d.deps.Tell(t.session(), run, told)
	news.Expires = now.Add(tellFor)
	change := &bot.Change{Send: []bot.Row{row}, Facts: []bot.Fact{news}}
	if t.isOver() && !t.Config {
		err = d.removeTask(ctx, t, change)
	} else {
		err = d.applyTask(ctx, t, change)
	}
	if err == nil {
		d.deps.Told(t.session())
	}
	return err
}

// reminderContent is what a reminder says: its text, which a model wrote, after the name of its owner in a group.
func (d *Scheduler) reminderContent(t *task, now time.Time) bot.Content {
	words, name := d.deps.Words.At(t.Place), ""
	if t.Place.Group {
		name = t.displayed("", false).Owner
	}
	head, tail, shown := words.Reminder(d.languageOf(t), name, t.lateSince(now))
	content := bot.Content{Text: head, Language: d.languageOf(t)}
	if at := strings.Index(head, shown); shown != "" && at >= 0 {
		content.Entities = append(content.Entities, render.Entity{
			Type: "text_link", Offset: render.Length(head[:at]), Length: render.Length(shown),
			URL: d.deps.Mention(t.Owner.Person),
		})
	}
	for _, m := range render.Markdown(t.Text) {
		for _, e := range m.Entities {
			e.Offset += render.Length(content.Text)
			content.Entities = append(content.Entities, e)
		}
		content.Text += m.Text
	}
	content.Text += tail
	return content
}

// rowFor is a message to the place of a task.
func (d *Scheduler) rowFor(t *task, text, key string) bot.Row {
	return bot.Row{
		Session: t.session(), Place: t.Place, Purpose: bot.Reply, Key: key,
		Content: bot.Content{Text: text, Entities: render.Inert(text), Language: d.languageOf(t)},
	}
}

// applyTask stores a task as it is now with a Change, and does what follows from it. The error wraps bot.ErrConflict if
// the task is not the one that was read.
func (d *Scheduler) applyTask(ctx context.Context, t *task, change *bot.Change) error {
	fact, err := t.storedFact()
	if err != nil {
		return err
	}
	change.Facts = append(change.Facts, fact)
	return d.storeChange(ctx, t, change, fact)
}

// removeTask deletes a task with a Change.
func (d *Scheduler) removeTask(ctx context.Context, t *task, change *bot.Change) error {
	fact := t.deletingFact()
	change.Facts = append(change.Facts, fact, d.revisionFact())
	return d.storeChange(ctx, t, change, fact)
}

func (d *Scheduler) storeChange(ctx context.Context, t *task, change *bot.Change, fact bot.Fact) error {
	if _, err := d.deps.Store.Apply(ctx, change); err != nil {
		// The reply may have been lost: what is stored decides.
		d.Forget()
		return fmt.Errorf("scheduled task %s: %w", t.key, err)
	}
	d.keepTask(t, fact)
	t.raw = fact.Value
	for i := range change.Arrive {
		d.deps.Engine.Wake(change.Arrive[i].Session)
	}
	for i := range change.Send {
		d.deps.Outbox.Wake(change.Send[i].Place)
	}
	return nil
}

// runIsOpen reports whether the last run of a task has not ended.
func (d *Scheduler) runIsOpen(ctx context.Context, t *task) (bool, error) {
	tickets, err := d.deps.Store.Tickets(ctx, string(t.session()))
	if err != nil || len(tickets) == 0 {
		return false, err
	}
	a, err := d.deps.Store.ArrivalOf(ctx, d.deps.Channel, d.deps.Bot, t.Run)
	if errors.Is(err, bot.ErrNotFound) {
		return false, nil
	}
	return slices.ContainsFunc(tickets, func(k bot.Ticket) bool { return k.Seq == a.Seq }), err
}

// skipRun leaves out a run because the last one has not ended, and says so once for that.
func (d *Scheduler) skipRun(ctx context.Context, t task, now time.Time) error {
	zone, _ := d.zoneOf(&t)
	next, err := t.nextRun(now, zone)
	if err != nil {
		return err
	}
	d.deps.Log.Info().Str("task", t.Name).Time("due", t.Next).Msg("run left out: the last one is not finished")
	if t.Next = next; t.Cron == "" { // it was made again while it runs: its time comes when that has ended
		t.Next = now.Add(soon)
		return d.applyTask(ctx, &t, &bot.Change{})
	}
	row := d.rowFor(&t, d.deps.Words.ScheduleSkipped(d.languageOf(&t), t.Name), "schedule/skip/"+t.Run)
	row.Purpose = bot.Notice
	return d.applyTask(ctx, &t, &bot.Change{Send: []bot.Row{row}})
}

// revokeTask switches a task off whose owner is not admitted any more, and tells the admins.
func (d *Scheduler) revokeTask(ctx context.Context, t task) error {
	t.State = texts.TaskRevoked
	change := &bot.Change{}
	if d.deps.Operators != nil {
		s := t.displayed("", false)
		for _, place := range d.deps.Operators() {
			text := d.deps.Words.At(place).ScheduleRevoked("", s.Name, s.Owner)
			change.Send = append(change.Send, bot.Row{
				Place: place, Purpose: bot.Notice, Key: "schedule/revoked/" + t.id() + "/" + place.Chat,
				Content: bot.Content{Text: text, Entities: render.Inert(text)},
			})
		}
	}
	d.deps.Log.Warn().Str("task", t.Name).Str("caller", t.Owner.Caller).
		Msg("scheduled task switched off: its owner is not admitted any more")
	return d.applyTask(ctx, &t, change)
}

// The outcomes of runs (dispatch.Schedule), besides the reasons of journal.EndEntry.
const (
	answered = "answered"
	unpaid   = "unpaid"  // a quota was used up before it began
	refused  = "refused" // its owner is not admitted
	dropped  = "dropped" // nobody has stored an outcome: a person dropped it, or its chat is gone
)

// isFailure reports whether an outcome is a failure.
func isFailure(outcome string) bool {
	switch outcome {
	case answered, unpaid, refused, dropped, journal.ReasonStopped, journal.ReasonOvertaken, journal.ReasonGone:
		return false
	default:
		return true
	}
}

// Ended returns what is stored together with the end of a run.
func (d *Scheduler) Ended(a *bot.Arrival, session bot.SessionKey, outcome string) []bot.Fact {
	id, ok := taskOf(a.ID)
	if !ok {
		return nil
	}
	return []bot.Fact{{
		Bucket: ends, Key: string(session) + "/" + id, Value: a.ID + " " + outcome, Expires: d.deps.Now().Add(endFor),
	}}
}

// accountEnds handles the ends of runs that are stored, and with all those of runs that ended without one.
func (d *Scheduler) accountEnds(ctx context.Context, all bool) error {
	list, err := d.deps.Store.FactsOf(ctx, ends, d.keyScope(), d.deps.Now())
	if err != nil {
		return err
	}
	var errs []error
	for i := range list {
		d.mu.Lock()
		t := d.tasks[list[i].Key]
		d.mu.Unlock()
		if t == nil { // it was deleted, or made by another process since
			t = &task{key: list[i].Key}
			errs = append(errs, d.withTask(ctx, t, func(ctx context.Context, t task) error {
				return d.discardEnd(ctx, &t, &list[i])
			}))
			continue
		}
		errs = append(errs, d.withTask(ctx, t, func(ctx context.Context, t task) error {
			return d.closeWith(ctx, &t, &list[i])
		}))
	}
	for _, t := range d.sortedTasks() {
		if !all || t.Run == "" {
			continue
		}
		errs = append(errs, d.withTask(ctx, t, func(ctx context.Context, t task) error {
			if waits, err := d.runIsOpen(ctx, &t); err != nil || waits {
				return err
			}
			return d.closeRun(ctx, &t)
		}))
	}
	return errors.Join(errs...)
}

// endAccounted deletes the end of a run that was accounted for.
func endAccounted(end *bot.Fact) bot.Fact {
	return bot.Fact{Bucket: ends, Key: end.Key, Was: &end.Value}
}

// closeRun accounts for the last run of a task, which has ended. What it has stored about its end was stored with that.
func (d *Scheduler) closeRun(ctx context.Context, t *task) error {
	value, err := d.deps.Store.Fact(ctx, ends, t.key, d.deps.Now())
	if err != nil {
		return err
	}
	return d.closeWith(ctx, t, &bot.Fact{Bucket: ends, Key: t.key, Value: value})
}

// closeWith accounts for the end of a run. t is what is stored then; a task that ran once and succeeded is deleted. One
// of the configuration is kept until its entry is gone or has another time: a start with a clock that was set back
// before its time would make it again.
func (d *Scheduler) closeWith(ctx context.Context, t *task, end *bot.Fact) error {
	change := &bot.Change{}
	if end.Value != "" {
		change.Facts = []bot.Fact{endAccounted(end)}
	}
	run, outcome, _ := strings.Cut(end.Value, " ")
	if run != t.Run {
		outcome = dropped
		if end.Value != "" { // of an earlier run
			return d.discardEnd(ctx, t, end)
		}
	}
	d.countFailure(t, outcome, change)
	if t.Run = ""; t.isOver() && !t.Config {
		return d.removeTask(ctx, t, change)
	}
	return d.applyTask(ctx, t, change)
}

// discardEnd deletes the end of a run that is not the last one of a task. The task must still be what was read, else
// another process has begun the run meanwhile, and its end counts: the error then wraps bot.ErrConflict.
func (d *Scheduler) discardEnd(ctx context.Context, t *task, end *bot.Fact) error {
	unchanged := bot.Fact{Bucket: bucket, Key: t.key, Value: t.raw, Was: new(t.raw)}
	_, err := d.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{unchanged, endAccounted(end)}})
	return err
}

// countFailure counts failures: a task rests after each, and is switched off after some in a row. What a quota did not
// pay for is tried again on the next day if it runs once; a repeated task has its next time.
func (d *Scheduler) countFailure(t *task, outcome string, change *bot.Change) {
	now := d.deps.Now()
	again := outcome == unpaid && t.Cron == ""
	switch {
	case outcome == answered:
		t.Fails = 0
		return
	case outcome == journal.ReasonGone:
		change.Send = append(change.Send, d.leaveChat(t, "schedule/left/"+t.Run)...)
		return
	case outcome == refused && t.Cron == "" && t.Next.IsZero():
		t.Next = now // where it is refused again, and that is said
		return
	case !isFailure(outcome) && !again:
		return
	}
	t.Fails++
	if t.Fails >= mostFails {
		t.State = texts.TaskFailing
		row := d.rowFor(t, d.deps.Words.ScheduleFailing(d.languageOf(t), t.Name, t.Fails), "schedule/failing/"+t.Run)
		_, resume, _, _, _, _ := d.deps.Words.ScheduleButtons(d.languageOf(t))
		row.Content.Buttons = [][]bot.Button{{{Label: resume, Data: buttonData(pressResume, t.id(), 0)}}}
		change.Send = append(change.Send, row)
		return
	}
	d.restAfterFailure(t, now, again)
}

// restAfterFailure sets when a task that has failed runs next; again: what a quota did not pay for.
func (d *Scheduler) restAfterFailure(t *task, now time.Time, again bool) {
	rest := now.Add(firstBackoff << (t.Fails - 1))
	if again {
		rest = d.nextQuotaDay(now)
	}
	if t.Cron == "" {
		if t.Next.IsZero() || t.Next.Before(rest) {
			t.Next = rest
		}
		return
	}
	zone, _ := d.zoneOf(t)
	if next, err := t.nextRun(rest, zone); err == nil && t.Next.Before(rest) {
		t.Next = next
	}
}

// nextQuotaDay returns when quotas have begun a new day: at midnight of the bot's zone, and a
// moment for clocks that differ.
func (d *Scheduler) nextQuotaDay(now time.Time) time.Time {
	zone, _ := d.deps.Zones.For("")
	year, month, day := now.In(zone).Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, zone).Add(soon)
}

// languageOf returns the language of the owner of a task, who may have chosen one since it was made.
func (d *Scheduler) languageOf(t *task) string {
	if d.deps.Language == nil {
		return t.Owner.Language
	}
	return d.deps.Language(t.Owner.Caller, t.Owner.Language)
}
