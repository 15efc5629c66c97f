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

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence"
)

// undone is the story of an answer whose changes Ann takes back.
var undone = story{
	script: `
on "please note it": call bash {"command":"echo line >> notes.txt"}
then say ` + answer1,
	step: (*run).stepUndo, promise: (*run).promiseUndo,
}

// Buttons of a receipt.
const (
	receiptButton = "Receipt"
	undoButton    = "Undo…"
	backButton    = "Delete" // of a file that did not exist before
)

// TestCrashUndo kills the process at every point of that story: whenever it ends, what the command has changed is put
// back, which is recorded once.
func TestCrashUndo(t *testing.T) { crash(t, undone, 7) }

func (r *run) stepUndo(ctx context.Context) (done bool, err error) {
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
	receipts := 0 // that offer nothing any more
	for _, m := range shown {
		if m.FromBot && strings.Contains(m.Text, "of the model") && len(m.Keyboard) == 0 || strings.Contains(m.Text, "↩ ") {
			receipts++
		}
	}
	for i, label := range []string{backButton, undoButton, receiptButton} {
		message := offers(shown, label)
		if message == 0 || label == receiptButton && receipts > 0 {
			continue
		}
		key := -(r.lives*1000 + message*10 + i) // no message has such an id
		if r.presses[key] != "" {
			return false, nil // it was pressed in this life
		}
		r.presses[key], err = r.fake.PressButton(ann, ann, message, label)
		return false, err
	}
	return r.still(ctx)
}

// offers returns the newest message with a button; 0 = none.
func offers(shown []telegramtest.Shown, label string) int {
	id := 0
	for _, m := range shown {
		for _, row := range m.Keyboard {
			for _, b := range row {
				if b.Text == label {
					id = m.MessageID
				}
			}
		}
	}
	return id
}

// promiseUndo: nothing is left of what the command did, and if it had done something, that is recorded once and the
// model will be told.
func (r *run) promiseUndo(ctx context.Context) error {
	var errs []error
	if _, err := os.Stat(filepath.Join(r.workspace(), notes)); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("the file is still there: %w", err))
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "undo", "*", "turns", "*.open")); len(left) > 0 {
		errs = append(errs, fmt.Errorf("left open: %s", left))
	}
	raw, err := os.ReadFile(filepath.Join(r.dir, "audit.jsonl"))
	lines := strings.Count(string(raw), `"tool":"undo"`)
	news := 0
	errs = append(errs, err, r.read(ctx, func(db persistence.Reader) error {
		facts, err := db.FactsOf(ctx, "news", "", time.Now())
		for _, f := range facts {
			news += strings.Count(f.Value, "has undone the file changes")
		}
		return err
	}))
	back := 0
	for _, m := range r.fake.Chat(ann) {
		if strings.Contains(m.Text, "↩ ") {
			back++
		}
	}
	if want := min(back, 1); lines != want || news != want {
		errs = append(errs, fmt.Errorf("put back is said %d times, recorded %d times, and the model is told %d times", back, lines, news))
	}
	return errors.Join(append(errs, r.answered(r.fake.Chat(ann), answer1))...)
}
