package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// TestResultsBringNoticesAndFiles: what a call's result brings besides goes out in the commit of its journal entry: both are there, or neither.
func TestResultsBringNoticesAndFiles(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		failed := false
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			if c.Append != nil && len(c.Append.Entries) == 1 && c.Append.Entries[0].Kind == journal.ResultEntry {
				if len(c.Send) != 2 {
					t.Errorf("%d rows in the commit of the result", len(c.Send))
				}
				if !failed {
					failed = true
					return errors.New("the disk is away")
				}
			}
			return nil
		}
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			if _, err := log.Load(ctx, room); err != nil {
				return agent.Outcome{}, err
			}
			entry := journal.Entry{
				Turn: turn.ID, Kind: journal.ResultEntry, Call: "c1_0", Tool: "srv:draw", Text: "[image]",
				Notices: []string{"The server srv asked for your city; it was declined."},
				Files:   []tools.File{{Name: "map.png", MIME: "image/png", Data: []byte{1, 2, 3}}},
			}
			if _, err := log.Append(ctx, entry); err != nil {
				return agent.Outcome{}, err
			}
			return answered(turn, "done"), nil
		}
		w.accept(w.start(), w.private("ann", "draw"))
		pass(5 * time.Minute)
		if !failed {
			t.Fatal("the result was never stored")
		}
		w.want(bot.Notice, "The server srv asked for your city; it was declined.", "srv:draw · map.png")
		w.want(bot.Final, "done")
	})
}
