// Package schedule keeps the tasks that people have scheduled, and begins a turn for each that is due: an ordinary one
// of its owner in the conversation that it was made in. A reminder is a task that is one message instead, without a
// turn. It answers /schedule.
//
// A task is a fact. What makes it due once on any number of processes is the Change that begins its turn: it stores the
// message of the turn, or the reminder, and replaces the fact, and is refused if the fact is not the one that it was
// computed from.
package schedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	tool "github.com/zephbot/zephbot/tools/schedule"
)

const (
	// bucket holds the tasks. A key is that of the conversation with the id of the task, so that tasks
	// follow a group that gets a new id.
	bucket = "schedule"
	// ends holds how the runs of tasks have ended, by the same keys, until that is accounted for.
	ends = "schedule_end"
	// revisions holds one value, which changes with the set of tasks: other processes read it instead of all tasks, and
	// limits on the number of tasks are checked against it.
	revisions = "schedule_revision"
)

// idPrefix begins the ids of arrivals: schedule-TASK-NUMBER.
const idPrefix = "schedule-"

// task is a scheduled task.
type task struct {
	key string // of its fact
	raw string // of its fact, as it was read; "" = it is new

	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
	Cron  string    `json:"cron,omitempty"` // "" = it runs once
	At    time.Time `json:"at,omitzero"`    // when it is to run, if it runs once
	Zone  string    `json:"zone,omitempty"` // its owner's when it was made; "" = that of the bot
	Owner owner     `json:"owner"`
	Place bot.Place `json:"place"`
	Title string    `json:"title,omitempty"` // of the group
	Call  string    `json:"call,omitempty"`  // that stored it last
	// It was made by Call and did not exist before: what is said if the call is run again.
	Fresh bool `json:"fresh,omitempty"`
	// It is an entry of [[scheduler.tasks]], and is deleted with that.
	Config bool            `json:"config,omitempty"`
	Next   time.Time       `json:"next,omitzero"` // zero = not any more
	Runs   int64           `json:"runs,omitempty"`
	Run    string          `json:"run,omitempty"` // arrival of the run that is not accounted for yet
	Fails  int             `json:"fails,omitempty"`
	State  texts.TaskState `json:"state,omitempty"`
	further
}

// further is what few tasks have.
type further struct {
	// Its text is sent to its owner as it is, instead of beginning a turn. Not Kind: tasks that were stored before this
	// existed are for the model, whatever their kind.
	Reminds bool   `json:"reminds,omitempty"`
	Left    string `json:"left,omitempty"` // the chat that the bot was removed from, if it is off for that
	By      string `json:"by,omitempty"`   // id of the task whose run made it; "" = a person
}

// owner is in whose name a task runs.
type owner struct {
	Caller   string `json:"caller"`
	Person   string `json:"person"`
	Name     string `json:"name,omitempty"`
	Username string `json:"username,omitempty"`
	Language string `json:"language,omitempty"`
}

// readTask decodes the fact of a task. The conversation is that of the key: a group may have got a new id.
func readTask(fact *bot.Fact) (*task, error) {
	t := &task{key: fact.Key, raw: fact.Value}
	if err := json.Unmarshal([]byte(fact.Value), t); err != nil {
		return nil, fmt.Errorf("scheduled task: %w", err)
	}
	session := t.session()
	if !session.Valid() {
		return nil, fmt.Errorf("scheduled task: %q begins with no conversation", fact.Key)
	}
	t.Place.Chat = session.Chat()
	if t.State == texts.TaskLeft && t.Left != t.Place.Chat {
		// the group has a new id, and nobody removed the bot: it was told that the old one is gone
		t.State = texts.TaskOn
	}
	return t, nil
}

// cutKey splits the key of a task into its conversation and its id.
func cutKey(key string) (bot.SessionKey, string) {
	i := strings.LastIndexByte(key, '/')
	return bot.SessionKey(key[:max(i, 0)]), key[i+1:]
}

func (t *task) session() bot.SessionKey {
	session, _ := cutKey(t.key)
	return session
}

func (t *task) id() string {
	_, id := cutKey(t.key)
	return id
}

// belongsTo reports whether a task is a person's.
func (t *task) belongsTo(caller string) bool { return caller != "" && t.Owner.Caller == caller }

// isOn reports whether a task will run.
func (t *task) isOn() bool { return t.State == texts.TaskOn && !t.Next.IsZero() }

// isOver reports whether a task has run for the last time, and that is accounted for.
func (t *task) isOver() bool {
	return t.State == texts.TaskOn && t.Cron == "" && t.Next.IsZero() && t.Run == ""
}

// storedFact returns the fact with which a Change replaces what was read.
func (t *task) storedFact() (bot.Fact, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("scheduled task: %w", err)
	}
	return bot.Fact{Bucket: bucket, Key: t.key, Value: string(raw), Was: new(t.raw)}, nil
}

// deletingFact returns the fact with which a Change deletes what was read.
func (t *task) deletingFact() bot.Fact { return bot.Fact{Bucket: bucket, Key: t.key, Was: new(t.raw)} }

// nextRun returns when a task runs after a time; zero = not any more.
func (t *task) nextRun(after time.Time, zone *time.Location) (time.Time, error) {
	if t.Cron == "" {
		return time.Time{}, nil
	}
	cron, err := tool.Repeats(t.Cron)
	if err != nil {
		return time.Time{}, err
	}
	return cron.Next(after, zone), nil
}

// message is what the turn of a run works on: the text of the task as a message of its owner.
func (t *task) message(now time.Time) *bot.Message {
	return &bot.Message{
		ID:        t.Run,
		Kind:      bot.Text,
		Place:     t.Place,
		Caller:    t.Owner.Caller,
		Person:    t.Owner.Person,
		Name:      t.Owner.Name,
		Username:  t.Owner.Username,
		Language:  t.Owner.Language,
		Title:     t.Title,
		Text:      t.prompt(),
		Addressed: true,
		At:        now,
	}
}

// prompt is the text of a task with a line about where it comes from.
func (t *task) prompt() string {
	what := "it runs once, and this is the time"
	if t.Cron != "" {
		what = "it runs at " + t.Cron + " (cron), and this is one of its times"
	}
	return prompt.TaskHead + strconv.Quote(t.Name) + ": " + what + "]\n" + t.Text
}

// runID is the id of the arrival of a run.
func runID(task string, n int64) string { return idPrefix + task + "-" + strconv.FormatInt(n, 10) }

// taskOf returns the id of the task that an arrival is a run of.
func taskOf(arrival string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(arrival, idPrefix)
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(rest, "-")
	return id, ok
}

// Heading returns the key of the outbox row that says what began the turn of an arrival.
func (d *Scheduler) Heading(arrival string) string { return "schedule/" + arrival }

// displayed is a task as people see it; text says whether they see its text.
func (t *task) displayed(zone string, text bool) texts.Task {
	s := texts.Task{
		Name:  t.Name,
		Owner: cmp.Or(t.Owner.Name, t.Owner.Username, t.Owner.Person),
		Cron:  t.Cron,
		Next:  t.Next,
		Zone:  zone,
		State: t.State, Reminds: t.Reminds,
	}
	if text {
		s.Text = t.Text
	}
	return s
}
