//go:build unix

package crashtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/persistence"
)

// counted is the story of a rule for some calls: Ann stores it with the first one, and the second one uses it.
var counted = story{
	script: `
on "please note it": call bash {"command":"touch it.txt"}
then say ` + answer1 + `
on "the second thing": call bash {"command":"touch it.txt"}
then say ` + answer2,
	step: (*run).stepCounted, promise: (*run).promiseCounted,
	prepare: func(r *run) { r.more = append(r.more, fmt.Sprintf("ZEPH_TELEGRAM_ADMINS=%d", ann)) },
}

// TestCrashCounted kills the process at every point of that story: whenever it ends, between the use that is counted
// and the call that it allows too, one use is counted, and no one is asked again.
func TestCrashCounted(t *testing.T) { crash(t, counted, 6) }

// alwaysSteps lead through the card, the last one first.
var alwaysSteps = []string{"Only 10 more times", "1. Exactly this", "Always…"}

func (r *run) stepCounted(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say(first)
	case count(shown, answer1) > 0 && r.said == 1:
		return false, r.say(second)
	case count(shown, answer1) > 0:
		if count(shown, answer2) == 0 {
			return false, nil
		}
		return r.still(ctx)
	}
	for i, label := range alwaysSteps {
		card := offers(shown, label)
		if card == 0 {
			continue
		}
		key := -(r.lives*1000 + card*10 + i) // no message has such an id
		if r.presses[key] == "" {            // not pressed in this life
			r.presses[key], err = r.fake.PressButton(ann, ann, card, label)
		}
		return false, err
	}
	return false, nil
}

// promiseCounted looks at the rule and at the chat.
func (r *run) promiseCounted(ctx context.Context) error {
	errs := []error{r.read(ctx, func(db persistence.Reader) error {
		asked, err := db.AskedSince(ctx, channel, fmt.Sprint(r.fake.BotID()), "bash", time.Time{}, 9)
		if err != nil || len(asked) != 1 {
			return errors.Join(err, fmt.Errorf("asked %d times", len(asked)))
		}
		list, err := db.FactsOf(ctx, approval.GrantBucket, "", time.Now())
		if err != nil || len(list) != 1 {
			return errors.Join(err, fmt.Errorf("%d rules", len(list)))
		}
		var g approval.Grant
		if err := json.Unmarshal([]byte(list[0].Value), &g); err != nil {
			return err
		}
		if g.Uses != 1 || g.Most == 0 || len(g.Last) != 1 {
			return fmt.Errorf("used %d of %d times: %+v", g.Uses, g.Most, g.Last)
		}
		return nil
	})}
	shown := r.fake.Chat(ann)
	return errors.Join(append(errs, r.answered(shown, answer1), r.answered(shown, answer2))...)
}
