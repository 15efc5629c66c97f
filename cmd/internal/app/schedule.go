package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/preference"
	"github.com/zephbot/zephbot/bot/schedule"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/zone"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	tasks "github.com/zephbot/zephbot/tools/schedule"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// planning is what happens at set times, by whose clock.
type planning struct {
	zones *zone.Zones             // of people; nil where nothing is stored
	own   *preference.Preferences // what people have chosen; nil like zones
	plan  *schedule.Scheduler     // nil where nothing is scheduled; set before anything runs
	// clientLanguage returns the language of a person's client when they last wrote, by their id; "" = not known. nil =
	// nobody writes from one; set before anything runs.
	clientLanguage func(id string) string

	callsAt callsAddress // where hooks are called
}

// openZones reads the time zones that people have set, and what else they have chosen for themselves.
func (c *Core) openZones(ctx context.Context) error {
	c.own = preference.New(preference.Deps{
		Store: c.stores.Bot, Words: c.words(), Now: c.now, Redact: c.redactor.String, Audit: c.commandAudit(),
	})
	if err := c.own.Follow(ctx); err != nil {
		return fmt.Errorf("read what people have chosen: %w", err)
	}
	c.zones = zone.New(zone.Deps{Store: c.stores.Bot, Words: c.words(), Now: c.now, Default: c.zone()})
	if err := c.zones.Follow(ctx); err != nil {
		return fmt.Errorf("read the time zones of people: %w", err)
	}
	return nil
}

// clockAt returns the clock of the readers of a place.
func (c *Core) clockAt(place bot.Place) texts.Clock {
	if c.own == nil {
		return texts.ClockAuto
	}
	return c.own.Clock(place)
}

// zoneAt returns the zone that the readers of a place have set; nil = none.
func (c *Core) zoneAt(place bot.Place) *time.Location {
	if c.zones == nil {
		return nil
	}
	return c.zones.In(place)
}

// languageAt returns the language that the person of a private chat reads, as far as it is known; "" = it is not.
func (c *Core) languageAt(place bot.Place) string {
	if c.own == nil || c.clientLanguage == nil || place.Group || !place.Ordinary() {
		return ""
	}
	return c.own.Language(place.Channel+":"+place.Chat, c.clientLanguage(place.Chat))
}

// zoneOf returns the zone of the caller of a turn.
func (c *Core) zoneOf(caller string) *time.Location {
	if c.zones != nil {
		at, _ := c.zones.For(caller)
		return at
	}
	if at := c.zone(); at != nil {
		return at
	}
	return time.UTC
}

// storeNow is the time by the clock of the database, on which the processes that share it agree. Where the clock is
// given from outside, that is the clock.
func (c *Core) storeNow() time.Time {
	if c.opts.given || c.stores == nil {
		return c.now()
	}
	return c.stores.Clock(c.now())
}

// scheduleTools are the tools by which a model schedules tasks.
func (c *Core) scheduleTools(*kit) ([]tools.Tool, error) {
	if !c.cfg.Scheduler.Enabled {
		return nil, nil
	}
	return tasks.New(tasks.Options{Book: planner{c}, Now: c.storeNow})
}

// unplanned reports whether a tool schedules tasks, and nothing is scheduled here.
func (c *Core) unplanned(tool string) bool {
	return c.plan == nil && act.Of(tasks.Says(), tool) != nil
}

// planner is the schedule of the running service. The tools are built before that.
type planner struct{ core *Core }

// Open implements tasks.Book.
func (p planner) Open(ctx context.Context, origin *tools.Origin) error {
	if p.core.plan == nil {
		return schedule.ErrElsewhere
	}
	if err := p.core.zones.Follow(ctx); err != nil { // another process may have stored one a moment ago
		return err
	}
	return p.core.plan.Open(ctx, origin)
}

// Zone implements tasks.Book.
func (p planner) Zone(origin *tools.Origin) *time.Location { return p.core.zoneOf(origin.Caller) }

// Put implements tasks.Book.
func (p planner) Put(ctx context.Context, call *tools.Call, task tasks.Task) (tasks.Stored, error) {
	if p.core.plan == nil {
		return tasks.Stored{}, schedule.ErrElsewhere
	}
	return p.core.plan.Put(ctx, call, task)
}

// List implements tasks.Book.
func (p planner) List(ctx context.Context, origin *tools.Origin) ([]tasks.Entry, error) {
	if p.core.plan == nil {
		return nil, schedule.ErrElsewhere
	}
	return p.core.plan.List(ctx, origin)
}

// Cancel implements tasks.Book.
func (p planner) Cancel(ctx context.Context, origin *tools.Origin, name string) (bool, error) {
	if p.core.plan == nil {
		return false, schedule.ErrElsewhere
	}
	return p.core.plan.Cancel(ctx, origin, name)
}

// engine is the dispatcher of a service, which is built after the schedule.
type engine struct{ s *service }

// Speaker implements schedule.Engine.
func (e engine) Speaker(ctx context.Context, session bot.SessionKey) (bot.Message, error) {
	return e.s.dispatcher.Speaker(ctx, session)
}

// Session implements schedule.Engine.
func (e engine) Session(msg *bot.Message) bot.SessionKey { return e.s.dispatcher.Session(msg) }

// Wake implements schedule.Engine.
func (e engine) Wake(session bot.SessionKey) { e.s.dispatcher.Wake(session) }

// outlets is the outbox of a service, which is built after the schedule.
type outlets struct{ s *service }

// Wake implements schedule.Outbox.
func (o outlets) Wake(place bot.Place) { o.s.outbox.Wake(place) }

// offeringStore offers what is written to the outbox of a service, which is built later: the heading of a turn that
// begins by itself holds its chat before it is stored, so that no answer overtakes it.
type offeringStore struct {
	bot.Store
	s *service
}

// Apply implements bot.Writer.
func (o offeringStore) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	return deliver.OfferingStore{Store: o.Store, Outbox: o.s.outbox}.Apply(ctx, change)
}

// openPlan makes the schedule of a channel that delivers at any time; at the terminal nobody may be there.
func (s *service) openPlan(store bot.Store) {
	c := s.core
	if s.ch.name != telegram.Name || !c.cfg.Scheduler.Enabled {
		return
	}
	c.plan = schedule.New(schedule.Deps{
		Channel:   s.ch.name,
		Bot:       s.ch.bot,
		Store:     offeringStore{store, s},
		Engine:    engine{s},
		Outbox:    outlets{s},
		Guard:     s.ch.guard,
		Gone:      s.ch.gone,
		Zones:     c.zones,
		Words:     c.words(),
		Operators: s.operators,
		Private:   func(person string) bot.Place { return telegram.Private(s.ch.bot, person) },
		Tell: func(session bot.SessionKey, id, text string) bot.Fact {
			return news.Told(session, c.storeNow(), id, text)
		},
		Told:     c.news.Note,
		Language: c.own.Language,
		Mention:  telegram.PersonLink,
		Current:  c.moves.Current,
		Now:      c.storeNow,
		Log:      c.log.With().Str("component", "schedule").Logger(),
	}, schedule.Options{
		MaxTasks: c.cfg.Scheduler.MaxTasks,
		Tick:     time.Duration(c.cfg.Scheduler.TickSecs) * time.Second,
		Config:   c.plannedTasks(s.ch.bot),
	})
}

// runs is what the dispatcher tells of turns that begin by themselves.
func (s *service) runs() map[bot.Source]dispatch.Runs {
	runs := map[bot.Source]dispatch.Runs{}
	if s.core.plan != nil {
		runs[bot.FromSchedule] = s.core.plan
	}
	if s.hooks != nil {
		runs[bot.FromHook] = s.hooks
	}
	return runs
}

// plannedTasks are the tasks of the configuration, which was checked.
func (c *Core) plannedTasks(botID string) []schedule.Config {
	var list []schedule.Config
	for i, t := range c.cfg.Scheduler.Tasks {
		task, place, owner, err := c.plannedTask(&t, botID)
		if err != nil {
			c.log.Error().Err(err).Str("key", fmt.Sprintf("scheduler.tasks[%d]", i)).Msg("this task does not run")
			continue
		}
		list = append(list, schedule.Config{Task: task, Owner: owner, Place: place})
	}
	return list
}

func (c *Core) plannedTask(t *config.Task, botID string) (task tasks.Task, place bot.Place, owner string, err error) {
	if task, err = tasks.Checked(t.Name, t.Kind, t.Task); err != nil {
		return task, place, "", err
	}
	if task.Cron = strings.Join(strings.Fields(t.Cron), " "); t.RunAt != "" {
		task.At, err = when.Stamp(t.RunAt, c.zoneOf(""))
	}
	place, owner = c.placeOf(botID, t.Owner, t.Chat)
	return task, place, owner, err
}

// placeOf returns where an entry of the configuration runs, and in whose name: 0 is the first admin, "" the private chat
// of the owner.
func (c *Core) placeOf(botID string, id int64, chat string) (place bot.Place, owner string) {
	if id == 0 && len(c.cfg.Telegram.Admins) > 0 {
		id = c.cfg.Telegram.Admins[0]
	}
	owner = strconv.FormatInt(id, 10)
	place = telegram.Private(botID, owner)
	if chat, thread, _ := strings.Cut(chat, "/"); chat != "" && chat != owner {
		place = telegram.Private(botID, chat)
		place.Thread, place.Group = thread, true
	}
	return place, owner
}
