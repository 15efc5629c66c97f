//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// taskText is the text of the task of that story.
const taskText = "say that the tea is ready"

// scheduled is the story of a task that Ann asks for, which is due two seconds later.
var scheduled = story{
	script: `
on "remind me": call schedule_deferred {"name":"tea","run_at":"+2s","task":"` + taskText + `"}
then say ` + answer1 + `
on "tea is ready": say ` + answer2,
	step: (*run).stepScheduled, promise: (*run).promiseScheduled,
}

// TestCrashScheduled kills the process at every point of that story: the task begins a turn, and it begins one.
func TestCrashScheduled(t *testing.T) { crash(t, scheduled, 5) }

// TestCrashScheduledOnPostgreSQL plays the same story with the service's data in PostgreSQL.
func TestCrashScheduledOnPostgreSQL(t *testing.T) {
	s := scheduled
	s.cluster = pgtest.Shared(t)
	crash(t, s, 2)
}

func (r *run) stepScheduled(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say("remind me of the tea")
	case count(shown, answer1) == 0 || count(shown, answer2) == 0:
		return false, nil
	}
	if still, err := r.still(ctx); err != nil || !still {
		return false, err
	}
	left, err := r.tasksLeft(ctx)
	return err == nil && left == 0, err
}

// tasksLeft counts the tasks that are stored, and the ends of runs that are not accounted for.
func (r *run) tasksLeft(ctx context.Context) (n int, err error) {
	return n, r.read(ctx, func(db persistence.Reader) error {
		for _, bucket := range []string{"schedule", "schedule_end"} {
			facts, err := db.FactsOf(ctx, bucket, "", time.Now())
			if err != nil {
				return err
			}
			n += len(facts)
		}
		return nil
	})
}

// promiseScheduled: one turn was begun by the task, both answers arrived, and nothing of the task is left.
func (r *run) promiseScheduled(ctx context.Context) error {
	left, err := r.tasksLeft(ctx)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d facts of the task are left", left)
	}
	begun := 0
	err = errors.Join(err, r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for i := range entries {
			if entries[i].Kind == journal.UserEntry && strings.HasSuffix(entries[i].Text, taskText) {
				begun++
			}
		}
		return err
	}))
	if begun != 1 {
		err = errors.Join(err, fmt.Errorf("the task began %d turns", begun))
	}
	shown := r.fake.Chat(ann)
	return errors.Join(err, r.answered(shown, answer1), r.answered(shown, answer2))
}

// reminded is the story of a reminder, which is due two seconds after Ann asks for it: no model is asked when it is due.
var reminded = story{
	script: `
on "remind me": call schedule_deferred {"name":"tea","run_at":"+2s","kind":"reminder","task":"drink tea"}
then say ` + answer1,
	step: (*run).stepReminded, promise: (*run).promiseReminded,
}

// reminder is what Ann is sent.
const reminder = "⏰ drink tea"

// TestCrashReminded kills the process at every point of that story: the reminder comes, and it comes once.
func TestCrashReminded(t *testing.T) { crash(t, reminded, 5) }

// TestCrashRemindedOnPostgreSQL plays the same story with the service's data in PostgreSQL.
func TestCrashRemindedOnPostgreSQL(t *testing.T) {
	s := reminded
	s.cluster = pgtest.Shared(t)
	crash(t, s, 2)
}

func (r *run) stepReminded(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say("remind me of the tea")
	case count(shown, answer1) == 0 || count(shown, reminder) == 0:
		return false, nil
	}
	if still, err := r.still(ctx); err != nil || !still {
		return false, err
	}
	left, err := r.tasksLeft(ctx)
	return err == nil && left == 0, err
}

// promiseReminded: the answer and the reminder arrived once, the reminder began no turn, and nothing of it is left.
func (r *run) promiseReminded(ctx context.Context) error {
	left, err := r.tasksLeft(ctx)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d facts of the reminder are left", left)
	}
	turns := 0
	err = errors.Join(err, r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for i := range entries {
			if entries[i].Kind == journal.UserEntry {
				turns++
			}
		}
		return err
	}))
	if turns != 1 {
		err = errors.Join(err, fmt.Errorf("there are %d turns, want that of the question", turns))
	}
	shown := r.fake.Chat(ann)
	return errors.Join(err, r.answered(shown, answer1), r.answered(shown, reminder))
}
