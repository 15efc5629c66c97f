package config

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schedule"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// taskChat is what scheduler.tasks[].chat can be: a group or a topic of one.
var taskChat = regexp.MustCompile(`^-\d{1,19}(/\d{1,19})?$`)

// task checks what makes a task run: its times, its text and in whose name. Lengths are checked before.
func (k *checker) task(at string, t *Task) {
	if t.Cron != "" && len([]rune(t.Cron)) <= schedule.MaxCron {
		if _, err := schedule.Repeats(t.Cron); err != nil {
			k.wrong(join(at, "cron"), "%s", sentence(err, "cron: "))
		}
	}
	if t.RunAt != "" {
		if _, err := when.Stamp(t.RunAt, time.UTC); err != nil {
			k.wrong(join(at, "run_at"), "%v", err)
		}
	}
	tooLong := len([]rune(t.Name)) > schedule.MaxName ||
		len([]rune(t.Kind)) > schedule.MaxKind || len([]rune(t.Task)) > schedule.MaxText
	if _, err := schedule.Checked(t.Name, t.Kind, t.Task); err != nil && t.Name != "" && !tooLong {
		k.wrong(at, "%s", sentence(err, ""))
	}
	k.taskPlace(at, t)
}

// taskPlace checks in whose name a task runs, and where.
func (k *checker) taskPlace(at string, t *Task) {
	if t.Owner == 0 && len(k.c.Telegram.Admins) == 0 && k.c.Telegram.Token != "" {
		k.wrong(join(at, "owner"), "there are no telegram.admins; name the person in whose name it runs")
	}
	if t.Chat != "" && !taskChat.MatchString(t.Chat) && t.Chat != strconv.FormatInt(t.Owner, 10) {
		k.wrong(join(at, "chat"), "%s is neither a group (\"-100123\") nor a topic of one (\"-100123/7\"); leave it "+
			"out for the private chat of the owner", shorten(t.Chat))
	}
}

// sentence is what an error of a tool says, without what is before it there.
func sentence(err error, before string) string {
	text := err.Error()
	if e, ok := errors.AsType[*tools.Error](err); ok {
		text = e.Message
	}
	return strings.TrimPrefix(text, before)
}
