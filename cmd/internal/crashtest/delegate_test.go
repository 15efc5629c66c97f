//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// delegated is the story of two sub-agents that work side by side; one of them asks for approval.
var delegated = story{
	script: `
on "please note it": call* delegate {"task":"look up what is planned","name":"scout","tools":["read"]} delegate {"task":"write one line","name":"writer","tools":["bash"]}
and usage 100 1
then say ` + answer1 + `
and usage 200 2
on "look up what": call read {"path":"plan.txt"}
and usage 1000 3
then say it is the plan
and usage 2000 4
on "write one line": call bash {"command":"echo line >> notes.txt"}
and usage 10000 5
then say it is written
and usage 20000 6`,
	step: (*run).stepDelegated, promise: (*run).promiseDelegated,
}

// TestCrashDelegate kills the process at every point of that story: whenever it ends, each sub-agent gets its task once
// and ends once, nothing runs twice, what it took is charged once, and there is one answer.
func TestCrashDelegate(t *testing.T) { crash(t, delegated, 5) }

// TestCrashDelegateOnPostgreSQL plays the same story with the service's data in PostgreSQL.
func TestCrashDelegateOnPostgreSQL(t *testing.T) {
	s := delegated
	s.cluster = pgtest.Shared(t)
	crash(t, s, 2)
}

func (r *run) stepDelegated(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	card := newestCard(shown)
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say(first)
	case card != 0 && r.pressedIn < r.lives:
		return false, r.press(card)
	case count(shown, answer1) == 0:
		return false, nil
	}
	return r.still(ctx)
}

// promiseDelegated looks at the journal, the file and the chat.
func (r *run) promiseDelegated(ctx context.Context) error {
	tasks, ends, seen := map[string]int{}, map[string]int{}, map[string]int{}
	unknown := false
	var used, charged int64
	errs := []error{r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for _, e := range entries {
			used += int64(e.Usage.Total())
			switch {
			case e.Kind == journal.StartedEntry, e.Kind == journal.ResultEntry:
				seen[string(e.Kind)+" "+e.Call]++
				unknown = unknown || e.Category == "unknown"
			case e.Child == "":
			case e.Kind == journal.UserEntry:
				tasks[e.Speaker]++
			case e.Kind == journal.AnswerEntry, e.Kind == journal.EndEntry:
				ends[e.Child]++
			}
		}
		charges, failed := db.Charges(ctx, "")
		for _, c := range charges {
			if c.Unit == "tokens" && strings.HasPrefix(c.Scope, "user/") {
				charged += c.N
			}
		}
		return errors.Join(err, failed)
	})}
	// What the journal does not have is asked again. The first answer was charged only if another sub-agent stored
	// something between the answer and the kill; no answer is charged twice.
	if answered := r.model.answered.Load(); used == 0 || charged < used || charged > answered {
		errs = append(errs, fmt.Errorf("%d tokens were used, %d charged, %d answered by the model", used, charged, answered))
	}
	for what, n := range seen {
		if n != 1 {
			errs = append(errs, fmt.Errorf("%d times %s", n, what))
		}
	}
	if len(ends) != 2 || tasks["scout"] != 1 || tasks["writer"] != 1 {
		errs = append(errs, fmt.Errorf("tasks %v, ends %v", tasks, ends))
	}
	for child, n := range ends {
		if n != 1 {
			errs = append(errs, fmt.Errorf("the sub-agent of %s ended %d times", child, n))
		}
	}
	raw, err := os.ReadFile(filepath.Join(r.workspace(), notes))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	if lines := strings.Count(string(raw), "line\n"); lines > 1 || lines == 0 && !unknown {
		errs = append(errs, fmt.Errorf("the command ran %d times; outcome unknown: %t", lines, unknown))
	}
	return errors.Join(append(errs, r.answered(r.fake.Chat(ann), answer1))...)
}
