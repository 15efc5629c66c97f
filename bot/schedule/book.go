package schedule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	tool "github.com/zephbot/zephbot/tools/schedule"
)

// Open implements tool.Book.
func (d *Scheduler) Open(ctx context.Context, origin *tools.Origin) error {
	_, err := d.speakerOf(ctx, origin)
	return err
}

// ErrElsewhere refuses calls of the tools of a service that schedules nothing.
var ErrElsewhere error = tools.Refused(reason.New(reason.ScheduleElsewhere), tellPerson)

// tellPerson is what a model should do about a refusal that only people can change.
const tellPerson = "Tell the person."

// speakerOf returns the message that the turn of a call works on: whose task it would be, and where.
func (d *Scheduler) speakerOf(ctx context.Context, origin *tools.Origin) (bot.Message, error) {
	refuse := func(code reason.Code) (bot.Message, error) {
		return bot.Message{}, tools.Refused(reason.New(code), tellPerson)
	}
	msg, err := d.deps.Engine.Speaker(ctx, bot.SessionKey(origin.Session))
	switch {
	case errors.Is(err, bot.ErrNotFound):
		return refuse(reason.ScheduleNowhere)
	case err != nil:
		return msg, fmt.Errorf("read who wants a task: %w", err)
	case !msg.Place.Ordinary():
		return refuse(reason.ScheduleOutside)
	case msg.FromBot || msg.Caller == "" || msg.Caller != origin.Caller:
		return refuse(reason.SchedulePeople)
	}
	return msg, nil
}

// Zone implements tool.Book.
func (d *Scheduler) Zone(origin *tools.Origin) *time.Location {
	at, _ := d.deps.Zones.For(origin.Caller)
	return at
}

// Put implements tool.Book.
func (d *Scheduler) Put(ctx context.Context, call *tools.Call, wanted tool.Task) (tool.Stored, error) {
	msg, err := d.speakerOf(ctx, &call.Origin)
	if err != nil {
		return tool.Stored{}, err
	}
	session := bot.SessionKey(call.Origin.Session)
	maker, _ := taskOf(msg.ID)
	if maker != "" && wanted.Cron == "" && wanted.At.Before(d.deps.Now().Add(soon)) {
		return tool.Stored{}, errHasty
	}
	for range conflicts {
		revision, list, err := d.readOpenTasks(ctx)
		if err != nil {
			return tool.Stored{}, err
		}
		t := taskNamed(list, session, msg.Caller, wanted.Name)
		if t != nil && t.Call == call.ID {
			return tool.Stored{Updated: !t.Fresh, Next: t.Next}, nil // the call is run again after a crash
		}
		if t == nil {
			if err := d.checkRoom(list, msg.Caller, maker); err != nil {
				return tool.Stored{}, err
			}
			t = &task{key: string(session) + "/" + taskID(session, call.ID), Fresh: true, further: further{By: maker}}
		} else {
			if t.Fresh = false; maker == "" {
				t.By = ""
			}
		}
		zone := ""
		if d.deps.Zones.Of(msg.Caller) != nil {
			_, zone = d.deps.Zones.For(msg.Caller)
		}
		t.Name = wanted.Name
		t.Kind, t.Reminds = wanted.Kind, wanted.Reminds()
		t.Text = wanted.Text
		t.Cron = wanted.Cron
		t.At = wanted.At
		t.Zone = zone
		t.Owner = owner{
			Caller:   msg.Caller,
			Person:   msg.Person,
			Name:     cmp.Or(call.Origin.Name, msg.Name),
			Username: msg.Username,
			Language: msg.Language,
		}
		t.Place, t.Title, t.Call, t.Config = msg.Place, msg.Title, call.ID, false
		t.Next, t.Fails, t.State = wanted.At, 0, texts.TaskOn
		if err = d.putTask(ctx, revision, t); errors.Is(err, bot.ErrConflict) {
			continue
		}
		return tool.Stored{Updated: !t.Fresh, Next: t.Next}, err
	}
	return tool.Stored{}, errBusy
}

// errBusy means that too many others change tasks at this moment.
var errBusy = &tools.Error{
	Category:   tools.ServerError,
	Message:    "the tasks are being changed by others at this moment",
	Suggestion: "Try once more.",
}

// errHasty refuses a task that a run of a task wants to begin at once: such a chain would never end.
var errHasty = &tools.Error{
	Category:   tools.InvalidParameters,
	Message:    "this turn is a run of a scheduled task, and what it schedules can run in a minute at the earliest",
	Suggestion: "Give a later time.",
}

// putTask stores a task, if the set of tasks is still that of a revision.
func (d *Scheduler) putTask(ctx context.Context, revision string, t *task) error {
	fact, err := t.storedFact()
	if err != nil {
		return err
	}
	revised := d.revisionFact()
	revised.Was = &revision
	_, err = d.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact, revised}})
	d.Forget()
	return err
}

// readOpenTasks reads the tasks that are not over from the store, with the revision that they have at least.
func (d *Scheduler) readOpenTasks(ctx context.Context) (revision string, list []*task, err error) {
	revision, list, err = d.readAllTasks(ctx)
	return revision, slices.DeleteFunc(list, (*task).isOver), err
}

// readAllTasks reads the tasks from the store, with the revision that they have at least.
func (d *Scheduler) readAllTasks(ctx context.Context) (revision string, list []*task, err error) {
	if revision, err = d.deps.Store.Fact(ctx, revisions, d.keyScope(), d.deps.Now()); err != nil {
		return "", nil, fmt.Errorf("read the scheduled tasks: %w", err)
	}
	if list, err = d.readStored(ctx); err != nil {
		return "", nil, fmt.Errorf("read the scheduled tasks: %w", err)
	}
	return revision, list, nil
}

// taskNamed finds a person's task of a conversation by its name.
func taskNamed(list []*task, session bot.SessionKey, caller, name string) *task {
	for _, t := range list {
		if t.session() == session && t.belongsTo(caller) && t.Name == name {
			return t
		}
	}
	return nil
}

// checkRoom refuses a further task of a person, if there are too many. maker is the task whose
// run wants it; "" = a person does.
func (d *Scheduler) checkRoom(list []*task, caller, maker string) error {
	own, made := 0, 0
	for _, t := range list {
		if t.belongsTo(caller) {
			own++
			if t.By != "" {
				made++
			}
		}
	}
	switch {
	case maker != "" && made >= mostMade:
		return fullError(reason.ScheduleMade, made)
	case own >= min(mostOfOne, d.opts.MaxTasks):
		return fullError(reason.ScheduleFullForOne, own)
	case len(list) >= d.opts.MaxTasks:
		return fullError(reason.ScheduleFull, len(list))
	default:
		return nil
	}
}

func fullError(code reason.Code, n int) error {
	return tools.Refused(
		reason.New(code, strconv.Itoa(n)),
		"Nothing was stored. Tell the person; list_tasks shows what could be cancelled.",
	)
}

// taskID is the id of the task that a call stores first: the same one if the call is run again.
func taskID(session bot.SessionKey, call string) string {
	sum := sha256.Sum256([]byte(string(session) + "\x00" + call))
	return hex.EncodeToString(sum[:8])
}

// List implements tool.Book: the tasks of the chat. The text of a task is its owner's alone.
func (d *Scheduler) List(ctx context.Context, origin *tools.Origin) ([]tool.Entry, error) {
	_, list, err := d.readOpenTasks(ctx)
	if err != nil {
		return nil, err
	}
	var entries []tool.Entry
	for _, t := range byNext(list) {
		if !t.session().InChat(origin.Chat) {
			continue
		}
		e := tool.Entry{Name: t.Name, Kind: t.Kind, Cron: t.Cron, Next: t.Next, State: string(t.State)}
		if e.Text = t.Text; !t.belongsTo(origin.Caller) {
			e.Text, e.Owner = "", t.displayed("", false).Owner
		}
		if t.State == texts.TaskOn && t.Next.IsZero() {
			e.State = "running"
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Cancel implements tool.Book. A task of the caller comes before one of somebody else, which only an admin may cancel,
// and only in a group: in a private chat nobody has a task but its person.
func (d *Scheduler) Cancel(ctx context.Context, origin *tools.Origin, name string) (bool, error) {
	for range conflicts {
		_, list, err := d.readOpenTasks(ctx)
		if err != nil {
			return false, err
		}
		t := d.toCancel(list, origin, name)
		switch {
		case t == nil:
			return false, nil
		case !t.belongsTo(origin.Caller) && !origin.Admin:
			return false, tools.Refused(
				reason.New(reason.TaskOfOther, strconv.Quote(t.Name), t.displayed("", false).Owner), tellPerson,
			)
		}
		_, err = d.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{t.deletingFact(), d.revisionFact()}})
		d.Forget()
		if !errors.Is(err, bot.ErrConflict) {
			return err == nil, err
		}
	}
	return false, errBusy
}

func (d *Scheduler) toCancel(list []*task, origin *tools.Origin, name string) *task {
	if t := taskNamed(list, bot.SessionKey(origin.Session), origin.Caller, name); t != nil {
		return t
	}
	var others *task
	for _, t := range list {
		if !t.session().InChat(origin.Chat) || !strings.EqualFold(t.Name, name) {
			continue
		}
		if t.belongsTo(origin.Caller) {
			return t
		}
		others = t
	}
	return others
}

var _ tool.Book = (*Scheduler)(nil)
