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
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence"
)

// background is the story of a command that nobody waits for: Ann is told once that it has ended, with one of her next
// messages.
var background = story{
	script: `
on "begin the work": call bash {"command":"echo line >> notes.txt","background":true}
then say ` + answer1 + `
on "the second thing": say ` + answer2,
	step: (*run).stepBackground, promise: (*run).promiseBackground,
}

// TestCrashBackground kills the process at every point of that story: the result of what ran is reported, whenever the
// process ends.
func TestCrashBackground(t *testing.T) { crash(t, background, 5) }

func (r *run) stepBackground(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	card := newestCard(shown)
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say("begin the work")
	case card != 0 && r.pressedIn < r.lives:
		return false, r.press(card)
	case count(shown, answer1) == 0 || count(shown, answer2) < r.said-1:
		return false, nil
	}
	if still, err := r.still(ctx); err != nil || !still {
		return false, err
	}
	h, err := r.heard(ctx)
	if err != nil || r.lives == 1 && h.begun > 0 { // its end is awaited
		return false, err
	}
	if r.said == 1 || h.due() {
		return false, r.say(second)
	}
	return true, nil
}

// heard is what is known about the command at the end of a message.
type heard struct {
	told    int // beginnings of turns that report its end
	started int // results that report its start
	begun   int // facts that say it is running
	kept    int // facts that nobody was told of yet, including those
	ran     int
}

// due reports whether somebody still has to be told.
func (h heard) due() bool { return h.told == 0 && h.started+h.kept+h.ran > 0 }

func (r *run) heard(ctx context.Context) (h heard, err error) {
	raw, err := os.ReadFile(filepath.Join(r.workspace(), notes))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	h.ran = strings.Count(string(raw), "line\n")
	return h, r.read(ctx, func(db persistence.Reader) error {
		for _, bucket := range []string{"background", "news"} {
			facts, err := db.FactsOf(ctx, bucket, "", time.Now())
			if err != nil {
				return err
			}
			h.kept += len(facts)
			if bucket == "background" {
				h.begun = len(facts)
			}
		}
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for _, e := range entries {
			switch {
			case e.Kind == journal.UserEntry:
				h.told += strings.Count(e.News, "[background run ")
			case e.Kind == journal.ResultEntry && strings.Contains(e.Text, "[background run "):
				h.started++
			}
		}
		return err
	})
}

// promiseBackground: the command ran at most once; if it ran, or was reported to run, its end was reported exactly
// once.
func (r *run) promiseBackground(ctx context.Context) error {
	h, err := r.heard(ctx)
	if err != nil {
		return err
	}
	if h.ran > 1 || h.told > 1 || h.due() || h.kept > 0 {
		err = fmt.Errorf("about the command: %+v", h)
	}
	return errors.Join(err, r.answered(r.fake.Chat(ann), answer1))
}
