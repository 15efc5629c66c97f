//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence"
)

// askedBack is the story of two questions of the model: Ann answers the first with a button, and the second in words.
var askedBack = story{
	script: `
on "please note it": call ask_user {"questions":[{"question":"Which colour?","choices":["Red","Blue"]},{"question":"And why?"}]}
then say ` + answer1,
	step: (*run).stepAsked, promise: (*run).promiseAsked,
}

const inWords = "like the sea"

// TestCrashAsked kills the process at every point of that story: whenever it ends, the model reads both answers, each
// once, and what Ann writes is no message of its own.
func TestCrashAsked(t *testing.T) { crash(t, askedBack, 6) }

func (r *run) stepAsked(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	card := offers(shown, "Blue")
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say(first)
	case card != 0 && r.pressedIn < r.lives && r.said == 1:
		r.pressedIn = r.lives
		_, err := r.fake.PressButton(ann, ann, card, "Blue")
		return false, err
	case r.said == 1:
		for _, m := range shown {
			if strings.Contains(m.Text, "→ Blue\n❓ And why?") {
				return false, r.say(inWords)
			}
		}
		return false, nil
	case count(shown, answer1) == 0:
		return false, nil
	}
	return r.still(ctx)
}

// promiseAsked looks at the journal, the question and the chat.
func (r *run) promiseAsked(ctx context.Context) error {
	const want = "The person has answered:\n" + `[{"question":"Which colour?","chosen":["Blue"]},{"question":"And why?","said":"` + inWords + `"}]`
	said, results := 0, 0
	errs := []error{r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for _, e := range entries {
			switch e.Kind {
			case journal.UserEntry:
				said++
			case journal.ResultEntry:
				if results++; e.Text != want {
					err = errors.Join(err, fmt.Errorf("the model reads %q", e.Text))
				}
				a, failed := db.ApprovalOf(ctx, session(r.fake.BotID()), e.Call)
				if failed != nil || a.State != bot.Approved {
					err = errors.Join(err, failed, fmt.Errorf("the question is %s", a.State))
				}
			}
		}
		return err
	})}
	if said != 1 || results != 1 {
		errs = append(errs, fmt.Errorf("%d messages and %d results", said, results))
	}
	shown := r.fake.Chat(ann)
	if p := r.fake.Problems(); len(p) > 0 {
		errs = append(errs, fmt.Errorf("misuse of the fake: %v", p))
	}
	return errors.Join(append(errs, r.answered(shown, answer1))...)
}
