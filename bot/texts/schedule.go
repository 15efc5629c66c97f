package texts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/visible"
)

// zoneBook is what /timezone says.
type zoneBook struct {
	Now, OfBot, Set, Back string // zone, time
	Foot, Choose          string
	Unknown, Near         string // what was written; names
	NotYours, UseBot      string
	Places                map[string]string // cities of likely zones
}

// scheduleBook is what is said of scheduled tasks.
type scheduleBook struct {
	Head, HeadGroup, None, NoneGroup, Off, Elsewhere string
	States                                           scheduleStates
	Runs                                             scheduleRuns
	Cron                                             string // expression, zone
	Once, By                                         string // when; name
	Text, Reminder                                   string // of the task, or of the reminder
	More                                             string // pages
	Asks                                             string // name
	Buttons                                          scheduleButtons
	Deleted, Gone, Busy, Started                     string
	NotYours, OwnerOnly                              string // name
}

// scheduleStates is when a task runs next, or why it does not.
type scheduleStates struct {
	Next                                  string // when
	Running, Paused, OffFailing, OffOwner string
	OffLeft                               string
}

// scheduleRuns is what is said when a task runs, or is left out.
type scheduleRuns struct {
	Heading, Skipped string // name
	Late             string // when
	Remind           string // text of a reminder
	RemindName       string // name, text of a reminder
	Failing          count  // name, failures
	Revoked          string // name, owner
	Left             string // group, names
}

// scheduleButtons are the labels of the buttons of /schedule.
type scheduleButtons struct {
	Pause, Resume, Run, Delete, Yes, Back string
}

// Zoned answers /timezone: the zone that holds for a person and the time there; own says that they have set it, chosen
// that they have just chosen.
func (w Words) Zoned(language, zone string, now time.Time, own, chosen bool) string {
	b := &w.in(language).Zones
	form := b.OfBot
	switch {
	case own && chosen:
		form = b.Set
	case chosen:
		form = b.Back
	case own:
		form = b.Now
	}
	text := fmt.Sprintf(form, zoneName(zone, now), w.dateTime(language, now)) + "\n" + b.Foot
	if !chosen {
		text += " " + b.Choose
	}
	return text
}

// zoneName is the name of a zone at a time. "Local", as an operator may write it, is none.
func zoneName(zone string, now time.Time) string {
	if zone == "Local" {
		return now.Format("MST")
	}
	return zone
}

// ZonePlace is the place that a zone is named after, as readers of a language call it.
func (w Words) ZonePlace(language, zone string) string {
	if place, ok := w.in(language).Zones.Places[zone]; ok {
		return place
	}
	return strings.ReplaceAll(zone[strings.LastIndexByte(zone, '/')+1:], "_", " ")
}

// ZoneUnknown says that there is no zone of a name, and which ones may have been meant.
func (w Words) ZoneUnknown(language, wanted string, near []string) string {
	b := &w.in(language).Zones
	text := fmt.Sprintf(b.Unknown, render.Cut(visible.Name(wanted), 64))
	if len(near) > 0 {
		text += " " + fmt.Sprintf(b.Near, strings.Join(near, ", "))
	}
	return text
}

// ZoneNotYours says that a button is somebody else's.
func (w Words) ZoneNotYours(language string) string { return w.in(language).Zones.NotYours }

// ZoneOfBot labels the button that takes the own zone back.
func (w Words) ZoneOfBot(language string) string { return w.in(language).Zones.UseBot }

// TaskState is what keeps a scheduled task from running at its next time.
type TaskState string

// The states of a task.
const (
	TaskOn      TaskState = ""
	TaskPaused  TaskState = "paused"
	TaskFailing TaskState = "failing" // it failed too often
	TaskRevoked TaskState = "revoked" // its owner is not admitted any more
	TaskLeft    TaskState = "left"    // the bot was removed from its chat
)

// Task is a scheduled task as people see it. Name, Owner and Text were chosen by people.
type Task struct {
	Name, Owner string
	Cron        string    // "" = it runs once
	Next        time.Time // zero = it runs now, or not any more
	Zone        string    // that Cron is in
	Text        string    // "" = not shown
	State       TaskState
	Reminds     bool // Text is sent to its owner, instead of being given to the model
}

// nameOfTask is a name in a sentence: on one line, and as long as a task's may be.
func nameOfTask(name string) string { return render.Cut(visible.Name(name), 128) }

// Schedule lists tasks, which are numbered from a number on; pages is how many pages there are.
func (w Words) Schedule(language string, page []Task, from, pages int, group bool) string {
	b := &w.in(language).Schedule
	head, none := b.Head, b.None
	if group {
		head, none = b.HeadGroup, b.NoneGroup
	}
	if len(page) == 0 {
		return none
	}
	lines := []string{head}
	for i := range page {
		t := &page[i]
		line := strconv.Itoa(from+i) + ". " + nameOfTask(t.Name) + " · " + w.taskState(language, t)
		if group {
			line += " · " + fmt.Sprintf(b.By, named(t.Owner))
		}
		lines = append(lines, line)
	}
	if pages > 1 {
		lines = append(lines, fmt.Sprintf(b.More, pages))
	}
	return strings.Join(lines, "\n")
}

// taskState says when a task runs next, or why it does not.
func (w Words) taskState(language string, t *Task) string {
	b := &w.in(language).Schedule
	switch {
	case t.State == TaskPaused:
		return b.States.Paused
	case t.State == TaskFailing:
		return b.States.OffFailing
	case t.State == TaskRevoked:
		return b.States.OffOwner
	case t.State == TaskLeft:
		return b.States.OffLeft
	case t.Next.IsZero():
		return b.States.Running
	default:
		return fmt.Sprintf(b.States.Next, w.Moment(language, t.Next))
	}
}

// ScheduleTask shows one task.
func (w Words) ScheduleTask(language string, t *Task) string {
	b := &w.in(language).Schedule
	lines := []string{nameOfTask(t.Name), w.taskState(language, t)}
	if t.Cron != "" {
		lines = append(lines, fmt.Sprintf(b.Cron, t.Cron, t.Zone))
	} else {
		lines = append(lines, b.Once)
	}
	lines = append(lines, fmt.Sprintf(b.By, named(t.Owner)))
	if t.Text != "" {
		form := b.Text
		if t.Reminds {
			form = b.Reminder
		}
		lines = append(lines, fmt.Sprintf(form, w.shown(language, t.Text)))
	}
	return strings.Join(lines, "\n")
}

// ScheduleButtons labels what can be done with a task.
func (w Words) ScheduleButtons(language string) (pause, resume, run, remove, yes, back string) {
	b := &w.in(language).Schedule.Buttons
	return b.Pause, b.Resume, b.Run, b.Delete, b.Yes, b.Back
}

// ScheduleAsks asks whether a task is to be deleted.
func (w Words) ScheduleAsks(language, name string) string {
	return fmt.Sprintf(w.in(language).Schedule.Asks, nameOfTask(name))
}

// ScheduleDeleted says that a task was deleted.
func (w Words) ScheduleDeleted(language, name string) string {
	return fmt.Sprintf(w.in(language).Schedule.Deleted, nameOfTask(name))
}

// ScheduleGone says that a task is no longer there.
func (w Words) ScheduleGone(language string) string { return w.in(language).Schedule.Gone }

// ScheduleBusy says that a task is running already.
func (w Words) ScheduleBusy(language string) string { return w.in(language).Schedule.Busy }

// ScheduleStarted says that a task runs at once.
func (w Words) ScheduleStarted(language string) string { return w.in(language).Schedule.Started }

// ScheduleOff says that nothing can be scheduled.
func (w Words) ScheduleOff(language string) string { return w.in(language).Schedule.Off }

// ScheduleElsewhere says that nothing can be scheduled where people are, whatever the configuration says.
func (w Words) ScheduleElsewhere(language string) string { return w.in(language).Schedule.Elsewhere }

// ScheduleNotYours says that a task is somebody else's. owner is whose; only says that admins may not do this either.
func (w Words) ScheduleNotYours(language, owner string, only bool) string {
	b := &w.in(language).Schedule
	form := b.NotYours
	if only {
		form = b.OwnerOnly
	}
	return fmt.Sprintf(form, named(owner))
}

// Scheduled is the line above the answer of a task: what began it, and since when it was due if it is late (zero = it
// is not).
func (w Words) Scheduled(language, name string, due time.Time) string {
	b := &w.in(language).Schedule
	text := fmt.Sprintf(b.Runs.Heading, nameOfTask(name))
	if !due.IsZero() {
		text += " " + fmt.Sprintf(b.Runs.Late, w.Moment(language, due))
	}
	return text
}

// Reminder returns what stands before and after the text of a reminder. name is whose it is, "" = it need not be said;
// shown is that name as it stands in head. due is since when it was due if it is late (zero = it is not).
func (w Words) Reminder(language, name string, due time.Time) (head, tail, shown string) {
	b := &w.in(language).Schedule
	if head = fmt.Sprintf(b.Runs.Remind, ""); name != "" {
		shown = named(name)
		head = fmt.Sprintf(b.Runs.RemindName, shown, "")
	}
	if !due.IsZero() {
		tail = " " + fmt.Sprintf(b.Runs.Late, w.Moment(language, due))
	}
	return head, tail, shown
}

// ScheduleSkipped says that a run was left out because the last one has not ended.
func (w Words) ScheduleSkipped(language, name string) string {
	return fmt.Sprintf(w.in(language).Schedule.Runs.Skipped, nameOfTask(name))
}

// ScheduleFailing says that a task was switched off after failures in a row.
func (w Words) ScheduleFailing(language, name string, failures int) string {
	return w.in(language).Schedule.Runs.Failing.with(failures, nameOfTask(name), failures)
}

// ScheduleRevoked tells an admin that the tasks of somebody do not run any more.
func (w Words) ScheduleRevoked(language, name, owner string) string {
	return fmt.Sprintf(w.in(language).Schedule.Runs.Revoked, nameOfTask(name), named(owner))
}

// mostLeft is how many tasks ScheduleLeft names.
const mostLeft = 10

// ScheduleLeft tells the owner of tasks that they are off because the bot was removed from their group.
func (w Words) ScheduleLeft(language, group string, names []string) string {
	more := ""
	if len(names) > mostLeft {
		names, more = names[:mostLeft], ", …"
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = nameOfTask(name)
	}
	return fmt.Sprintf(w.in(language).Schedule.Runs.Left, named(group), strings.Join(shown, ", ")+more)
}
