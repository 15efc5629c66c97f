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

// fire begins the turn of a task that is due, in one Change that also says when it is due next. After an outage that is
// one turn, however often the task was due meanwhile.
func (d *Scheduler) fire(ctx context.Context, t task) error {
	now := d.deps.Now()
	if t.Run != "" {
		waits, err := d.waits(ctx, &t)
		if err != nil {
			return err
		}
		if waits {
			return d.skip(ctx, t, now)
		}
		if err := d.close(ctx, &t); err != nil || !t.on() || t.Next.After(now) {
			return err
		}
	}
	admitted, err := d.admitted(ctx, &t, now)
	if err != nil {
		return err
	}
	if !admitted {
		return d.revoke(ctx, t)
	}
	change, err := d.begin(&t, now)
	if err != nil {
		return err
	}
	return d.apply(ctx, &t, change)
}

// admitted reports whether the owner of a task may still talk where it runs. Whoever has left a group has no turns there
// any more; a task of the configuration belongs to whom the operator says.
func (d *Scheduler) admitted(ctx context.Context, t *task, now time.Time) (bool, error) {
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

// begin returns the Change that begins a run now, and advances the task.
func (d *Scheduler) begin(t *task, now time.Time) (*bot.Change, error) {
	late := time.Time{}
	if !t.Next.IsZero() && now.Sub(t.Next) > soon {
		late = t.Next
	}
	zone, _ := d.zone(t)
	next, err := t.next(now, zone)
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
		Channel: d.deps.Channel, Bot: d.deps.Bot, ID: t.Run, Source: bot.FromSchedule, Session: t.session(), Raw: raw, At: now,
	}}}
	words := d.deps.Words.At(t.Place)
	change.Send = []bot.Row{d.row(t, words.Scheduled(t.Owner.Language, t.Name, late), d.Heading(t.Run))}
	return change, nil
}

// row is a message to the place of a task.
func (d *Scheduler) row(t *task, text, key string) bot.Row {
	return bot.Row{
		Session: t.session(), Place: t.Place, Purpose: bot.Reply, Key: key,
		Content: bot.Content{Text: text, Entities: render.Inert(text), Language: t.Owner.Language},
	}
}

// apply stores a task as it is now with a Change, and does what follows from it. The error wraps bot.ErrConflict if the
// task is not the one that was read.
func (d *Scheduler) apply(ctx context.Context, t *task, change *bot.Change) error {
	fact, err := t.fact()
	if err != nil {
		return err
	}
	change.Facts = append(change.Facts, fact)
	return d.store(ctx, t, change, fact)
}

// remove deletes a task with a Change.
func (d *Scheduler) remove(ctx context.Context, t *task, change *bot.Change) error {
	fact := t.gone()
	change.Facts = append(change.Facts, fact, d.revised())
	return d.store(ctx, t, change, fact)
}

func (d *Scheduler) store(ctx context.Context, t *task, change *bot.Change, fact bot.Fact) error {
	if _, err := d.deps.Store.Apply(ctx, change); err != nil {
		// The reply may have been lost: what is stored decides.
		d.Forget()
		return fmt.Errorf("scheduled task %s: %w", t.key, err)
	}
	d.keep(t, fact)
	t.raw = fact.Value
	for i := range change.Arrive {
		d.deps.Engine.Wake(change.Arrive[i].Session)
	}
	for i := range change.Send {
		d.deps.Outbox.Wake(change.Send[i].Place)
	}
	return nil
}

// waits reports whether the last run of a task has not ended.
func (d *Scheduler) waits(ctx context.Context, t *task) (bool, error) {
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

// skip leaves out a run because the last one has not ended, and says so once for that.
func (d *Scheduler) skip(ctx context.Context, t task, now time.Time) error {
	zone, _ := d.zone(&t)
	next, err := t.next(now, zone)
	if err != nil {
		return err
	}
	if t.Next = next; t.Cron == "" { // it was made anew while it runs: its time comes when that has ended
		t.Next = now.Add(soon)
		return d.apply(ctx, &t, &bot.Change{})
	}
	row := d.row(&t, d.deps.Words.ScheduleSkipped(t.Owner.Language, t.Name), "schedule/skip/"+t.Run)
	row.Purpose = bot.Notice
	return d.apply(ctx, &t, &bot.Change{Send: []bot.Row{row}})
}

// revoke switches a task off whose owner is not admitted any more, and tells the admins.
func (d *Scheduler) revoke(ctx context.Context, t task) error {
	t.State = texts.TaskRevoked
	change := &bot.Change{}
	if d.deps.Operators != nil {
		s := t.shown("", false)
		text := d.deps.Words.ScheduleRevoked("", s.Name, s.Owner)
		for _, place := range d.deps.Operators() {
			change.Send = append(change.Send, bot.Row{
				Place: place, Purpose: bot.Notice, Key: "schedule/revoked/" + t.id() + "/" + place.Chat,
				Content: bot.Content{Text: text, Entities: render.Inert(text)},
			})
		}
	}
	d.deps.Log.Warn().Str("task", t.Name).Str("caller", t.Owner.Caller).Msg("scheduled task switched off: its owner is not admitted any more")
	return d.apply(ctx, &t, change)
}

// The outcomes of runs (dispatch.Schedule), besides the reasons of journal.EndEntry.
const (
	answered = "answered"
	unpaid   = "unpaid"  // a quota was used up before it began
	refused  = "refused" // its owner is not admitted
	dropped  = "dropped" // nobody has stored an outcome: a person dropped it, or its chat is gone
)

// failed reports whether an outcome is a failure.
func failed(outcome string) bool {
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

// account handles the ends of runs that are stored, and with all those of runs that ended without one.
func (d *Scheduler) account(ctx context.Context, all bool) error {
	list, err := d.deps.Store.FactsOf(ctx, ends, d.scope(), d.deps.Now())
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
			errs = append(errs, d.guarded(ctx, t, func(ctx context.Context, t task) error { return d.discard(ctx, &t, &list[i]) }))
			continue
		}
		errs = append(errs, d.guarded(ctx, t, func(ctx context.Context, t task) error { return d.closeWith(ctx, &t, &list[i]) }))
	}
	for _, t := range d.sorted() {
		if !all || t.Run == "" {
			continue
		}
		errs = append(errs, d.guarded(ctx, t, func(ctx context.Context, t task) error {
			if waits, err := d.waits(ctx, &t); err != nil || waits {
				return err
			}
			return d.close(ctx, &t)
		}))
	}
	return errors.Join(errs...)
}

// over deletes the end of a run that was accounted for.
func over(end *bot.Fact) bot.Fact {
	return bot.Fact{Bucket: ends, Key: end.Key, Was: &end.Value}
}

// close accounts for the last run of a task, which has ended. What it has stored about its end was stored with that.
func (d *Scheduler) close(ctx context.Context, t *task) error {
	value, err := d.deps.Store.Fact(ctx, ends, t.key, d.deps.Now())
	if err != nil {
		return err
	}
	return d.closeWith(ctx, t, &bot.Fact{Bucket: ends, Key: t.key, Value: value})
}

// closeWith accounts for the end of a run. t is what is stored then; a task that ran once and succeeded is deleted. One of
// the configuration is kept until its entry is gone or has another time: a start with a clock that was set back before
// its time would make it anew.
func (d *Scheduler) closeWith(ctx context.Context, t *task, end *bot.Fact) error {
	change := &bot.Change{}
	if end.Value != "" {
		change.Facts = []bot.Fact{over(end)}
	}
	run, outcome, _ := strings.Cut(end.Value, " ")
	if run != t.Run {
		outcome = dropped
		if end.Value != "" { // of an earlier run
			return d.discard(ctx, t, end)
		}
	}
	d.tally(t, outcome, change)
	if t.Run = ""; t.over() && !t.Config {
		return d.remove(ctx, t, change)
	}
	return d.apply(ctx, t, change)
}

// discard deletes the end of a run that is not the last one of a task. The task must still be what was read, else another
// process has begun the run meanwhile, and its end counts: the error then wraps bot.ErrConflict.
func (d *Scheduler) discard(ctx context.Context, t *task, end *bot.Fact) error {
	unchanged := bot.Fact{Bucket: bucket, Key: t.key, Value: t.raw, Was: new(t.raw)}
	_, err := d.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{unchanged, over(end)}})
	return err
}

// tally counts failures: a task rests after each, and is switched off after some in a row. What a quota did not pay for
// is tried again on the next day if it runs once; a repeated task has its next time.
func (d *Scheduler) tally(t *task, outcome string, change *bot.Change) {
	now := d.deps.Now()
	again := outcome == unpaid && t.Cron == ""
	switch {
	case outcome == answered:
		t.Fails = 0
		return
	case outcome == journal.ReasonGone:
		change.Send = append(change.Send, d.leave(t, "schedule/left/"+t.Run)...)
		return
	case outcome == refused && t.Cron == "" && t.Next.IsZero():
		t.Next = now // where it is refused again, and that is said
		return
	case !failed(outcome) && !again:
		return
	}
	t.Fails++
	if t.Fails >= mostFails {
		t.State = texts.TaskFailing
		row := d.row(t, d.deps.Words.ScheduleFailing(t.Owner.Language, t.Name, t.Fails), "schedule/failing/"+t.Run)
		_, resume, _, _, _, _ := d.deps.Words.ScheduleButtons(t.Owner.Language)
		row.Content.Buttons = [][]bot.Button{{{Label: resume, Data: data(pressResume, t.id(), 0)}}}
		change.Send = append(change.Send, row)
		return
	}
	d.rest(t, now, again)
}

// rest sets when a task that has failed runs next; again: what a quota did not pay for.
func (d *Scheduler) rest(t *task, now time.Time, again bool) {
	rest := now.Add(firstBackoff << (t.Fails - 1))
	if again {
		rest = d.afresh(now)
	}
	if t.Cron == "" {
		if t.Next.IsZero() || t.Next.Before(rest) {
			t.Next = rest
		}
		return
	}
	zone, _ := d.zone(t)
	if next, err := t.next(rest, zone); err == nil && t.Next.Before(rest) {
		t.Next = next
	}
}

// afresh returns when quotas have begun a new day: at midnight of the bot's zone, and a moment for clocks that differ.
func (d *Scheduler) afresh(now time.Time) time.Time {
	zone, _ := d.deps.Zones.For("")
	year, month, day := now.In(zone).Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, zone).Add(soon)
}
