package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
	tool "github.com/zephbot/zephbot/tools/schedule"
)

// Config is a task of the configuration.
type Config struct {
	Task  tool.Task // At is set if it runs once, and may be over
	Owner string    // id of the person in whose name it runs
	Place bot.Place
}

// configureTasks makes the stored tasks of the configuration those of Options.Config. Every process does it at its
// start; what is stored already keeps its times.
func (d *Scheduler) configureTasks(ctx context.Context) error {
	changed, err := d.reconcileTasks(ctx)
	if n := len(d.opts.Config); err == nil && (n > 0 || changed) {
		d.deps.Log.Info().Int("tasks", n).Bool("changed", changed).Msg("the tasks of the configuration are scheduled")
	}
	return err
}

// reconcileTasks does it, and reports whether anything had to be changed.
func (d *Scheduler) reconcileTasks(ctx context.Context) (changed bool, err error) {
	for range conflicts {
		revision, list, err := d.readAllTasks(ctx)
		if err != nil {
			return false, err
		}
		change, err := d.configuredChange(list)
		if err != nil || len(change.Facts) == 0 {
			return false, err
		}
		revised := d.revisionFact()
		revised.Was = &revision
		change.Facts = append(change.Facts, revised)
		if _, err = d.deps.Store.Apply(ctx, change); !errors.Is(err, bot.ErrConflict) {
			d.Forget()
			return err == nil, err
		}
	}
	return false, errBusy
}

// configuredChange returns the Change that makes the tasks of the configuration the wanted ones.
func (d *Scheduler) configuredChange(list []*task) (*bot.Change, error) {
	change := &bot.Change{}
	wanted := map[string]bool{}
	now := d.deps.Now()
	for i := range d.opts.Config {
		t, err := d.wantedTask(list, &d.opts.Config[i], now)
		if err != nil {
			return nil, err
		}
		wanted[t.key] = true
		if t.raw == "" && t.Next.IsZero() { // its time was over when it was written
			continue
		}
		fact, err := t.storedFact()
		if err != nil {
			return nil, err
		}
		if fact.Value != t.raw {
			change.Facts = append(change.Facts, fact)
		}
	}
	for _, t := range list {
		if t.Config && !wanted[t.key] {
			change.Facts = append(change.Facts, t.deletingFact())
		}
	}
	return change, nil
}

// wantedTask returns the task that an entry of the configuration describes, as it is to be stored.
func (d *Scheduler) wantedTask(list []*task, c *Config, now time.Time) (*task, error) {
	caller := d.deps.Channel + ":" + c.Owner
	session := d.deps.Engine.Session(&bot.Message{
		Kind: bot.Text, Place: c.Place, Caller: caller, Person: c.Owner, Addressed: true,
	})
	// The id is that of the entry; the conversation may have moved since the entry was written.
	session, id := d.deps.Current(session), taskID(session, "config/"+c.Task.Name)
	t := &task{key: string(session) + "/" + id}
	for _, old := range list {
		if old.key == t.key {
			t = new(*old)
		}
	}
	same := t.raw != "" && t.Cron == c.Task.Cron && t.At.Equal(c.Task.At)
	t.Name, t.Kind, t.Text, t.Cron, t.At, t.Config = c.Task.Name, c.Task.Kind, c.Task.Text, c.Task.Cron, c.Task.At, true
	t.Reminds = c.Task.Reminds()
	t.Owner.Caller, t.Owner.Person, t.Place = caller, c.Owner, c.Place
	t.Place.Chat = session.Chat()
	if same {
		return t, nil
	}
	if t.Next = t.At; t.Cron != "" {
		zone, _ := d.zoneOf(t)
		var err error
		t.Next, err = t.nextRun(now, zone)
		return t, err
	}
	if !t.At.After(now) {
		t.Next = time.Time{}
	}
	return t, nil
}
