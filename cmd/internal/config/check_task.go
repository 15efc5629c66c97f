package config

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/policy/lazyregexp"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schedule"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// taskChat is what the chat of a task or hook can be: a group or a topic of one.
var taskChat = lazyregexp.New(`^-\d{1,19}(/\d{1,19})?$`)

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
	k.placeOf(at, t.Owner, t.Chat)
}

// placeOf checks in whose name an entry runs, and where.
func (k *checker) placeOf(at string, owner int64, chat string) {
	if owner == 0 && len(k.c.Telegram.Admins) == 0 && k.c.Telegram.Token != "" {
		k.wrong(join(at, "owner"), "there are no telegram.admins; name the person in whose name it runs")
	}
	if chat != "" && !taskChat().MatchString(chat) && chat != strconv.FormatInt(owner, 10) {
		k.wrong(join(at, "chat"), "%s is neither a group (\"-100123\") nor a topic of one (\"-100123/7\"); leave it "+
			"out for the private chat of the owner", shorten(chat))
	}
}

// hookName is what the name of a hook can be.
var hookName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// leastSecret is how many characters the secret of a hook has at least.
const leastSecret = 16

// hooks checks the entries of [[hooks]]; package check reads their prompts.
func (k *checker) hooks() {
	seen := map[string]bool{}
	for i, h := range k.c.Hooks {
		at := item("hooks", i)
		if k.bad[at] {
			continue
		}
		switch {
		case h.Name == "":
			k.required(join(at, "name"))
		case !hookName().MatchString(h.Name):
			k.wrong(join(at, "name"), "%s is no name of a hook; use 1 to 32 of a-z, 0-9, _ and -", shorten(h.Name))
		case seen[h.Name]:
			k.wrong(join(at, "name"), "%s is the name of an earlier hook too; names must differ", shorten(h.Name))
		}
		seen[h.Name] = true
		switch n := len([]rune(h.Secret.Reveal())); {
		case n == 0:
			k.required(join(at, "secret"))
		case n < leastSecret:
			k.wrong(join(at, "secret"), "has %d characters; at least %d keep others from guessing it: openssl rand -hex 32",
				n, leastSecret)
		}
		if h.Prompt == "" {
			k.required(join(at, "prompt"))
		}
		k.placeOf(at, h.Owner, h.Chat)
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
