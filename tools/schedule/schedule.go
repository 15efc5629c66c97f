// Package schedule is the tools by which a model schedules tasks: once at a point in time, or again and again. Who
// keeps the tasks and runs them is a Book; the times are read by package when.
package schedule

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/scan"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// Limits of a task, in characters.
const (
	MaxName = 128
	MaxCron = 64
	MaxKind = 64
	MaxText = 512
)

// Custom is the kind of the tasks whose text is given to the model. Kinds that are not reserved mean the same.
const Custom = "custom"

// Reminder is the kind of the tasks whose text is sent to the person as it is, without the model.
const Reminder = "reminder"

// Task is a task that somebody wants to be stored.
type Task struct {
	Name, Kind, Text string
	Cron             string    // "" = it runs once, at At
	At               time.Time // of the first run
}

// Reminds reports whether the text is sent to the person, instead of being given to the model.
func (t *Task) Reminds() bool { return t.Kind == Reminder }

// Entry is a task that is stored, as its caller may see it.
type Entry struct {
	Name, Kind string
	Cron       string    // "" = it runs once
	Next       time.Time // zero = not any more
	State      string    // in words: "paused"; "" = it will run
	Owner      string    // "" = the caller
	Text       string    // of the caller's own tasks; "" = somebody else's
}

// Stored is what became of a task.
type Stored struct {
	Updated bool // the caller had a task of that name in this conversation
	Next    time.Time
}

// Book keeps tasks. All methods are for the caller and the conversation of a call. Errors are *tools.Error where the
// model can do something about them. Safe for concurrent use.
type Book interface {
	// Open returns why nothing can be scheduled here; nil = it can.
	Open(ctx context.Context, origin *tools.Origin) error
	// Zone returns the time zone of the caller.
	Zone(origin *tools.Origin) *time.Location
	// Put stores a task durably, or updates the caller's one of that name in this conversation. A call that has stored
	// its task already changes nothing.
	Put(ctx context.Context, call *tools.Call, task Task) (Stored, error)
	// List lists the tasks of the chat that the caller may see, by the next run.
	List(ctx context.Context, origin *tools.Origin) ([]Entry, error)
	// Cancel deletes a task; false = there is none of that name.
	Cancel(ctx context.Context, origin *tools.Origin, name string) (bool, error)
}

// Options are the dependencies of the tools.
type Options struct {
	Book Book
	Now  func() time.Time
}

// The names of the tools.
const (
	periodic = "schedule_periodic"
	deferred = "schedule_deferred"
	list     = "list_tasks"
	cancel   = "cancel_task"
)

// Says returns the statements of this package's tools for the policy.
func Says() []act.Tool {
	return []act.Tool{
		{Name: periodic, Statement: act.Statement{Act: act.Keeps, Verb: act.Create, Gain: 0.75}},
		{Name: deferred, Statement: act.Statement{Act: act.Keeps, Verb: act.Create, Gain: 0.75}},
		{Name: list, Statement: act.Statement{Act: act.Recalls, Verb: act.List, Gain: 0.65}},
		{Name: cancel, Statement: act.Statement{Act: act.Keeps, Verb: act.Delete, Gain: 0.75}},
	}
}

// reserved are kinds of work of a service itself, with who does it here.
var reserved = map[string]string{ //nolint:gochecknoglobals // a constant table
	"memory_cleanup": "expired data is deleted every hour by itself",
	"skill_refresh":  "skills are read again by themselves when their files change",
	"health_check":   "the operator watches /healthz and /readyz, and /status shows the state",
	"update_check":   "the program does not look for newer versions of itself",
	"experiment":     "there are no experiments",
}

type toolset struct{ Options }

// New makes the tools.
func New(o Options) ([]tools.Tool, error) {
	t := &toolset{o}
	var list []tools.Tool
	for _, make := range []func() (tools.Tool, error){t.periodic, t.deferred, t.list, t.cancel} {
		tool, err := make()
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
	}
	return list, nil
}

type periodicArgs struct {
	Name   string        `json:"name" jsonschema:"short name of the task; the same name updates it"`
	Cron   string        `json:"cron" jsonschema:"when: 5 fields (minute hour day month weekday), or 6 with the seconds in front, in the person's time zone"`
	Kind   string        `json:"kind,omitempty" jsonschema:"reminder, or custom (the default)"`
	Task   string        `json:"task,omitempty" jsonschema:"custom: what you are to do then, as the person would ask for it; reminder: what the person is to read then, such as drink tea; at most 512 characters"`
	Config *taskInConfig `json:"config,omitempty" jsonschema:"another place for task"`
}

type taskInConfig struct {
	Task string `json:"task,omitempty"`
}

func (t *toolset) periodic() (tools.Tool, error) {
	read := func(in periodicArgs, zone *time.Location) (Task, error) {
		if in.Task == "" && in.Config != nil {
			in.Task = in.Config.Task
		}
		task, err := Checked(in.Name, in.Kind, in.Task)
		if err != nil {
			return task, err
		}
		task.Cron = strings.Join(strings.Fields(in.Cron), " ")
		cron, err := Repeats(task.Cron)
		if err != nil {
			return task, err
		}
		task.At = cron.Next(t.Now(), zone)
		return task, nil
	}
	return tools.New(tools.Typed[periodicArgs]{
		Definition: tools.Definition{
			Name: periodic, Repeatable: true, Says: act.Of(Says(), periodic),
			Description: "Schedules something again and again for this person in this chat. " + kinds +
				" Times are in the person's time zone. \"0 9 * * 1-5\" is nine on working days.",
		},
		Describe: func(_ context.Context, _ *tools.Call, in periodicArgs) (tools.Subject, error) {
			if in.Task == "" && in.Config != nil {
				in.Task = in.Config.Task
			}
			return described(in.Name, in.Cron, in.Task), nil
		},
		Check: func(ctx context.Context, call *tools.Call, in periodicArgs) error {
			if _, err := read(in, time.UTC); err != nil {
				return err
			}
			return t.Book.Open(ctx, &call.Origin)
		},
		Run: func(ctx context.Context, call *tools.Call, in periodicArgs) (*tools.Result, error) {
			zone := t.Book.Zone(&call.Origin)
			task, err := read(in, zone)
			if err != nil {
				return nil, err
			}
			return t.put(ctx, call, task, zone)
		},
		Adjust: func(s *jsonschema.Schema) { s.Required = []string{"name", "cron"} },
	})
}

type deferredArgs struct {
	Name  string `json:"name" jsonschema:"short name of the task; the same name updates it"`
	RunAt string `json:"run_at" jsonschema:"when: +2m, +1h30m, in 5 minutes, 15:00, 3pm, tomorrow 09:30, or ISO 8601 (2026-12-24T18:00, in the person's time zone unless it has an offset)"`
	Kind  string `json:"kind,omitempty" jsonschema:"reminder, or custom (the default)"`
	Task  string `json:"task,omitempty" jsonschema:"custom: what you are to do then, as the person would ask for it; reminder: what the person is to read then, such as drink tea; at most 512 characters"`
}

func (t *toolset) deferred() (tools.Tool, error) {
	return tools.New(tools.Typed[deferredArgs]{
		Definition: tools.Definition{
			Name: deferred, Repeatable: true, Says: act.Of(Says(), deferred),
			Description: "Schedules something once for this person in this chat. " + kinds +
				" Use it whenever somebody wants to be reminded of something.",
		},
		Describe: func(_ context.Context, _ *tools.Call, in deferredArgs) (tools.Subject, error) {
			return described(in.Name, in.RunAt, in.Task), nil
		},
		// A time that was right when it was asked for may be over when a person has decided, so only Run refuses that.
		Check: func(ctx context.Context, call *tools.Call, in deferredArgs) error {
			if _, err := Checked(in.Name, in.Kind, in.Task); err != nil {
				return err
			}
			return t.Book.Open(ctx, &call.Origin)
		},
		Run: func(ctx context.Context, call *tools.Call, in deferredArgs) (*tools.Result, error) {
			task, err := Checked(in.Name, in.Kind, in.Task)
			if err != nil {
				return nil, err
			}
			zone := t.Book.Zone(&call.Origin)
			if task.At, err = when.Point(in.RunAt, t.Now(), zone); err != nil {
				return nil, wrong("Give a time in the future.", "run_at: %w", err)
			}
			return t.put(ctx, call, task, zone)
		},
		Adjust: func(s *jsonschema.Schema) { s.Required = []string{"name", "run_at"} },
	})
}

// kinds says what happens when the time of a task has come.
const kinds = "Of the kind reminder, its text is sent to them as it is, on time and without you; " +
	"of the kind custom, you are given its text as a message of theirs and do what it says."

// put stores a task and says which of the two it is, and when it runs first.
func (t *toolset) put(ctx context.Context, call *tools.Call, task Task, zone *time.Location) (*tools.Result, error) {
	stored, err := t.Book.Put(ctx, call, task)
	if err != nil {
		return nil, err
	}
	verb, what, runs := "Created", "task", "runs"
	then := "You are given its text then."
	if stored.Updated {
		verb = "Updated"
	}
	if task.Reminds() {
		what, runs, then = Reminder, "is sent", "You are not asked then."
	}
	if task.Cron != "" {
		runs += " first"
	}
	return &tools.Result{
		Text: fmt.Sprintf(
			"%s %s %q: it %s at %s (%s). %s", verb, what, task.Name, runs, clock(stored.Next, zone), zone, then,
		),
	}, nil
}

// clock says a moment for the model.
func clock(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Monday, 2006-01-02 15:04:05 MST")
}

type listArgs struct{}

func (t *toolset) list() (tools.Tool, error) {
	return tools.New(tools.Typed[listArgs]{
		Definition: tools.Definition{
			Name: list, ReadOnly: true, Says: act.Of(Says(), list),
			Description: "Lists the scheduled tasks of this chat: name, kind, mode and next run.",
		},
		Run: func(ctx context.Context, call *tools.Call, _ listArgs) (*tools.Result, error) {
			entries, err := t.Book.List(ctx, &call.Origin)
			if err != nil {
				return nil, err
			}
			return &tools.Result{Text: taskTable(entries, t.Book.Zone(&call.Origin))}, nil
		},
	})
}

// taskTable lists tasks for the model.
func taskTable(entries []Entry, zone *time.Location) string {
	if len(entries) == 0 {
		return "No tasks are scheduled here."
	}
	lines := []string{"NAME | KIND | MODE | NEXT RUN | WHOSE | TASK"}
	for _, e := range entries {
		mode, next, whose, text := "once", "never", "the caller's", e.Text
		if e.Cron != "" {
			mode = "cron " + e.Cron
		}
		if !e.Next.IsZero() {
			next = clock(e.Next, zone)
		}
		if e.State != "" {
			next = e.State
		}
		if e.Owner != "" {
			whose, text = e.Owner, "(not shown)"
		}
		lines = append(lines, strings.Join(
			[]string{oneLine(e.Name), e.Kind, mode, next, oneLine(whose), oneLine(text)}, " | ",
		))
	}
	return strings.Join(lines, "\n")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

type cancelArgs struct {
	Name string `json:"name" jsonschema:"name of the task"`
}

func (t *toolset) cancel() (tools.Tool, error) {
	return tools.New(tools.Typed[cancelArgs]{
		Definition: tools.Definition{
			Name: cancel, Says: act.Of(Says(), cancel),
			Description: "Cancels a scheduled task of this chat by its name.",
		},
		Describe: func(_ context.Context, _ *tools.Call, in cancelArgs) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{in.Name}, Show: in.Name}, nil
		},
		Run: func(ctx context.Context, call *tools.Call, in cancelArgs) (*tools.Result, error) {
			name := strings.TrimSpace(in.Name)
			found, err := t.Book.Cancel(ctx, &call.Origin, name)
			switch {
			case err != nil:
				return nil, err
			case !found:
				return nil, wrong("list_tasks shows the names.", "task %q not found", short(name))
			}
			return &tools.Result{Text: fmt.Sprintf("Cancelled task %q.", name)}, nil
		},
	})
}

// described is what the policy and a person see of a call that stores a task.
func described(name, at, text string) tools.Subject {
	return tools.Subject{
		Inputs: []string{text},
		Show:   strings.TrimSpace(name) + " · " + strings.TrimSpace(at) + "\n" + text,
	}
}

// wrong is an error about arguments.
func wrong(suggestion, format string, values ...any) error {
	e := tools.Errorf(tools.InvalidParameters, "%s", fmt.Errorf(format, values...).Error())
	e.Suggestion = suggestion
	return e
}

func short(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Checked returns a task with what it has besides its time, without the control characters of its texts. A reminder
// without a text is of its name. It refuses
// what is too long rather than cutting it: a part of a text can mean something else. The error is an *tools.Error.
func Checked(name, kind, text string) (Task, error) {
	t := Task{
		Name: strings.TrimSpace(printable(name, false)),
		Kind: strings.TrimSpace(kind),
		Text: strings.TrimSpace(printable(text, true)),
	}
	switch {
	case t.Kind == "":
		t.Kind = Custom
	case strings.EqualFold(t.Kind, Reminder):
		t.Kind = Reminder
		t.Text = cmp.Or(t.Text, t.Name)
	}
	for _, field := range []struct {
		name, text string
		most       int
	}{{"name", t.Name, MaxName}, {"kind", t.Kind, MaxKind}, {"task", t.Text, MaxText}} {
		if n := len([]rune(field.text)); n > field.most {
			return t, wrong("Make it shorter.", "%s has %d characters; allowed: %d", field.name, n, field.most)
		}
	}
	switch instead, own := reserved[t.Kind]; {
	case t.Name == "":
		return t, wrong("Give the task a short name.", "name is empty")
	case own:
		return t, wrong(
			"Use the kind custom with a task text.", "tasks of the kind %s cannot be scheduled: %s", t.Kind, instead,
		)
	case t.Text == "":
		return t, wrong("Say in task what is to be done then.", "task is empty")
	}
	if found := scan.Flag(t.Name + "\n" + t.Text); len(found) > 0 {
		return t, wrong(
			"Word the task as a plain request.",
			"the text of the task looks like an attempt to override instructions (%s), so it is not stored",
			found[0].Rule,
		)
	}
	return t, nil
}

// Repeats reads a cron expression. The error is an *tools.Error.
func Repeats(cron string) (when.Cron, error) {
	if n := len([]rune(cron)); n > MaxCron {
		return when.Cron{}, wrong("Make it shorter.", "cron has %d characters; allowed: %d", n, MaxCron)
	}
	c, err := when.ParseCron(cron)
	if err != nil {
		return c, wrong("Write five fields, such as 0 9 * * 1-5.", "cron: %w", err)
	}
	return c, nil
}

// printable removes control characters; lines keeps line breaks and tabs.
func printable(text string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case (r == '\n' || r == '\t') && lines:
			return r
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, ""))
}
