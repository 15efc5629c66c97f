package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/clock"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// Store is what a Scheduler needs of a store (bot.Store).
type Store interface {
	bot.Writer
	bot.Facts
	Tickets(ctx context.Context, scope string) ([]bot.Ticket, error)
	ArrivalOf(ctx context.Context, channel, botID, id string) (bot.Arrival, error)
}

// Engine runs turns (dispatch.Dispatcher).
type Engine interface {
	// Speaker returns the message that the turn in progress of a session works on; bot.ErrNotFound if there is none.
	Speaker(ctx context.Context, session bot.SessionKey) (bot.Message, error)
	// Session returns the conversation that a message belongs to.
	Session(msg *bot.Message) bot.SessionKey
	// Wake asks it to look at a session.
	Wake(session bot.SessionKey)
}

// Outbox delivers rows. Wake announces new ones.
type Outbox interface {
	Wake(place bot.Place)
}

// Zones knows the time zones of people (bot/zone).
type Zones interface {
	// Of returns the zone that a person has set; nil = none.
	Of(caller string) *time.Location
	// For returns the zone of a person, which is that of the bot if they have not set one, and its name.
	For(caller string) (*time.Location, string)
}

// Deps are the dependencies of a Scheduler. All but Operators and Gone are required.
type Deps struct {
	Channel, Bot string
	Store        Store
	Engine       Engine
	Outbox       Outbox
	Guard        interface {
		Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error)
	}
	// Gone reports whether a person has left a group; nil = nobody does.
	Gone      func(ctx context.Context, place bot.Place, person string) (bool, error)
	Zones     Zones
	Words     texts.Words
	Operators func() []bot.Place // where admins are told of tasks that were switched off; nil = nowhere
	// Private returns the chat with a person alone, where they are told of tasks in chats that are gone.
	Private func(person string) bot.Place
	// Tell returns a fact with which the model of a session is told text at its next turn; id is unique at that time.
	Tell func(session bot.SessionKey, id, text string) bot.Fact
	// Told says that such a fact is stored. It must not block.
	Told func(session bot.SessionKey)
	// Mention returns the link that notifies a person of a message in a group.
	Mention func(person string) string
	// Language returns the language of a person whose client told this one; nil = that one.
	Language func(caller, told string) string
	// Current returns the key that a session has now: its group may have got a new id.
	Current func(session bot.SessionKey) bot.SessionKey
	Now     func() time.Time // of the store: the processes that share it agree on it
	Log     zerolog.Logger
}

// Options configure a Scheduler. Zero values mean the documented default.
type Options struct {
	MaxTasks int           // of all people together; default 100
	Tick     time.Duration // how long nothing is looked at if nothing is due; default a minute
	Look     time.Duration // how often the clock is looked at meanwhile; default clock.Look
	Config   []Config      // tasks of the configuration
}

const (
	// mostOfOne is how many tasks one person may have.
	mostOfOne = 25
	// mostMade is how many tasks of one person may have been made by runs of tasks.
	mostMade = 5
	// mostFails is after how many failures in a row a task is switched off.
	mostFails = 5
	// firstBackoff is how long a task rests after it has failed; each further failure doubles it.
	firstBackoff = 5 * time.Minute
	// tryAgain is how long nothing is done after the store has failed.
	tryAgain = 5 * time.Second
	// soon is how late a run may be before people are told when it was due.
	soon = time.Minute
	// endFor is how long it is kept how a run has ended, if no process accounts for it.
	endFor = 30 * 24 * time.Hour
	// tellFor is how long a model is to be told of a reminder, if its conversation has no turn.
	tellFor = 7 * 24 * time.Hour
	// conflicts is how often a change is computed again because another process was faster.
	conflicts = 20
)

// Scheduler keeps tasks and begins their turns. Make it with New, and call Run once. Safe for concurrent use.
type Scheduler struct {
	deps Deps
	opts Options

	mu        sync.Mutex
	known     bool // revision and tasks have been read, and nothing is known to have changed since
	forgotten int  // how often Forget was called
	revision  string
	tasks     map[string]*task // by key

	settle bool // a run has ended here
	nudged chan struct{}
}

// New returns a Scheduler.
func New(deps Deps, opts Options) *Scheduler {
	if opts.MaxTasks <= 0 {
		opts.MaxTasks = 100
	}
	if opts.Tick <= 0 {
		opts.Tick = time.Minute
	}
	return &Scheduler{deps: deps, opts: opts, nudged: make(chan struct{}, 1)}
}

// Feature returns /schedule, with the timer of the tasks; d is nil where nothing is scheduled, which off says.
func (d *Scheduler) Feature(off func(language string) string) feature.Feature {
	return feature.Feature{
		Name:     "schedule",
		Off:      d == nil,
		Commands: []feature.Command{{Name: "schedule", Run: d.Command, OffText: off}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: d}},
		Run:      d.Run,
		Follow:   d.Follow,
		Moved:    d.Forget,
	}
}

// Run begins the turns of tasks when they are due, until ctx ends.
func (d *Scheduler) Run(ctx context.Context) error {
	made := false
	looked := time.Time{} // when the ends of all runs were looked at
	for ctx.Err() == nil {
		var err error
		if !made {
			err = d.configureTasks(ctx)
			made = err == nil
		}
		now := d.deps.Now()
		all := looked.IsZero() || now.Sub(looked) >= d.opts.Tick || now.Before(looked)
		if err = errors.Join(err, d.runDue(ctx, all)); err != nil && ctx.Err() == nil {
			d.deps.Log.Error().Err(err).Msg("scheduled tasks are looked at again in a moment")
		} else if all {
			looked = now
		}
		d.waitForWork(ctx, err != nil)
	}
	return nil
}

// waitForWork waits until a task is due, something has changed, or Tick has passed.
func (d *Scheduler) waitForWork(ctx context.Context, failed bool) {
	now := d.deps.Now()
	until := now.Add(d.opts.Tick)
	if failed {
		until = now.Add(min(d.opts.Tick, tryAgain))
	} else if due := d.earliestDue(); !due.IsZero() && due.Before(until) {
		until = due
	}
	clock.Until(ctx, d.deps.Now, until, d.opts.Look, d.nudged)
}

// earliestDue returns when the next task is due; zero = none is.
func (d *Scheduler) earliestDue() (due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.tasks {
		if t.isOn() && (due.IsZero() || t.Next.Before(due)) {
			due = t.Next
		}
	}
	return due
}

// runDue accounts for runs that have ended, and begins the turns of the tasks that are due. all says that runs whose
// end nobody has stored are looked for too.
func (d *Scheduler) runDue(ctx context.Context, all bool) error {
	d.mu.Lock()
	known, settle := d.known && !all, d.settle || all
	d.settle = false
	d.mu.Unlock()
	if !known {
		if err := d.loadTasks(ctx); err != nil {
			return err
		}
	}
	if settle {
		if err := d.accountEnds(ctx, all); err != nil {
			d.Settle()
			return err
		}
	}
	var errs []error
	now := d.deps.Now()
	for _, t := range d.sortedTasks() {
		if t.isOn() && !t.Next.After(now) {
			errs = append(errs, d.withTask(ctx, t, d.fireTask))
		}
	}
	return errors.Join(errs...)
}

// withTask does something about a task; if another process was faster, all tasks are read again.
func (d *Scheduler) withTask(ctx context.Context, t *task, do func(ctx context.Context, t task) error) error {
	err := do(ctx, *t)
	if errors.Is(err, bot.ErrConflict) || errors.Is(err, bot.ErrLost) {
		d.Forget()
		return nil
	}
	return err
}

// sortedTasks lists the tasks by their next run.
func (d *Scheduler) sortedTasks() []*task {
	d.mu.Lock()
	defer d.mu.Unlock()
	return byNext(slices.Collect(maps.Values(d.tasks)))
}

func byNext(list []*task) []*task {
	slices.SortFunc(list, func(a, b *task) int {
		switch {
		case a.Next.IsZero() != b.Next.IsZero():
			if a.Next.IsZero() {
				return 1
			}
			return -1
		case !a.Next.Equal(b.Next):
			return a.Next.Compare(b.Next)
		default:
			return strings.Compare(a.key, b.key)
		}
	})
	return list
}

// loadTasks reads all tasks.
func (d *Scheduler) loadTasks(ctx context.Context) error {
	d.mu.Lock()
	forgotten := d.forgotten
	d.mu.Unlock()
	revision, err := d.deps.Store.Fact(ctx, revisions, d.keyScope(), d.deps.Now())
	if err != nil {
		return err
	}
	list, err := d.readStored(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.revision, d.tasks = d.forgotten == forgotten, revision, make(map[string]*task, len(list))
	for _, t := range list {
		d.tasks[t.key] = t
	}
	return nil
}

// keyScope is what the keys of all tasks of this bot begin with.
func (d *Scheduler) keyScope() string { return d.deps.Channel + "/" + d.deps.Bot + "/" }

// readStored reads the tasks from the store. One that cannot be read was written by
// another version: it is left to that.
func (d *Scheduler) readStored(ctx context.Context) ([]*task, error) {
	facts, err := d.deps.Store.FactsOf(ctx, bucket, d.keyScope(), d.deps.Now())
	if err != nil {
		return nil, err
	}
	var list []*task
	for i := range facts {
		t, err := readTask(&facts[i])
		if err != nil {
			d.deps.Log.Warn().Err(err).Str("key", facts[i].Key).Msg("left as it is")
			continue
		}
		list = append(list, t)
	}
	return list, nil
}

// Follow looks for tasks that another process has stored.
func (d *Scheduler) Follow(ctx context.Context) error {
	revision, err := d.deps.Store.Fact(ctx, revisions, d.keyScope(), d.deps.Now())
	if err != nil {
		return err
	}
	d.mu.Lock()
	changed := d.known && revision != d.revision
	d.mu.Unlock()
	if changed {
		d.Forget()
	}
	return nil
}

// Forget makes everything be read again: tasks were changed, or a group has a new id. What is being read at that moment
// does not count.
func (d *Scheduler) Forget() {
	d.mu.Lock()
	d.known = false
	d.forgotten++
	d.mu.Unlock()
	d.nudge()
}

// Settle makes the ends of runs be looked at. It does not block.
func (d *Scheduler) Settle() {
	d.mu.Lock()
	d.settle = true
	d.mu.Unlock()
	d.nudge()
}

func (d *Scheduler) nudge() {
	select {
	case d.nudged <- struct{}{}:
	default:
	}
}

// revisionFact is the fact that tells other processes that the set of tasks has changed.
func (d *Scheduler) revisionFact() bot.Fact {
	return bot.Fact{Bucket: revisions, Key: d.keyScope(), Value: rand.Text()}
}

// keepTask replaces a task in memory by what was stored.
func (d *Scheduler) keepTask(t *task, fact bot.Fact) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if fact.Value == "" {
		delete(d.tasks, t.key)
		return
	}
	now := *t
	now.raw = fact.Value
	d.tasks[t.key] = &now
}

// zoneOf returns the zone of a task. One that this version does not know counts as that of the bot.
func (d *Scheduler) zoneOf(t *task) (*time.Location, string) {
	if t.Zone != "" {
		if at, name, err := when.Zone(t.Zone); err == nil {
			return at, name
		}
	}
	return d.deps.Zones.For("")
}
