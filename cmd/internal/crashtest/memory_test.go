//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence"
)

// remembered is the story of a fact that is remembered and then replaced.
var remembered = story{
	script: `
on "please note it": call memory_save {"content":"Ann likes tea","subject":"drink"}
then call memory_save {"content":"Ann likes coffee","subject":"drink"}
then say ` + answer1,
	step: (*run).stepMemory, promise: (*run).promiseMemory,
}

// TestCrashMemory kills the process at every point of that story: whenever it ends, the second fact alone is remembered,
// once, the replacement is recorded, and no call is reported as unknown.
func TestCrashMemory(t *testing.T) { crash(t, remembered, 4) }

func (r *run) stepMemory(ctx context.Context) (done bool, err error) {
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say(first)
	case count(r.fake.Chat(ann), answer1) == 0:
		return false, nil
	}
	return r.still(ctx)
}

func (r *run) promiseMemory(ctx context.Context) error {
	var errs []error
	errs = append(errs, r.read(ctx, func(db persistence.Reader) error {
		facts, err := db.FactsOf(ctx, "memory", "", time.Now())
		if len(facts) != 1 || !strings.Contains(facts[0].Value, "coffee") {
			err = errors.Join(err, fmt.Errorf("remembered: %+v", facts))
		}
		entries, more := db.Journal(ctx, session(r.fake.BotID()), 0)
		for _, e := range entries {
			if e.Kind == journal.ResultEntry && (e.Failed || !strings.Contains(e.Text, "Remembered for this person")) {
				err = errors.Join(err, fmt.Errorf("a call ended with %q", e.Text))
			}
		}
		return errors.Join(err, more)
	}))
	raw, err := os.ReadFile(filepath.Join(r.dir, "audit.jsonl"))
	if n := strings.Count(string(raw), `"tool":"memory_replaced"`); n != 1 {
		errs = append(errs, fmt.Errorf("the replacement is recorded %d times", n))
	}
	return errors.Join(append(errs, err, r.answered(r.fake.Chat(ann), answer1))...)
}
