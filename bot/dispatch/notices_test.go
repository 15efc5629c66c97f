package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
)

// TestResultsBringNoticesAndFiles: what a call's result brings besides goes out in the commit of its journal entry:
// both are there, or neither.
func TestResultsBringNoticesAndFiles(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		failed := false
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			if c.Append != nil && len(c.Append.Entries) == 1 && c.Append.Entries[0].Kind == journal.ResultEntry {
				if len(c.Send) != 3 {
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
				Parts: []llm.Part{
					{Kind: llm.ImagePart, Type: "image/png", Name: "map.png", Hash: "ab12", Size: 3}, {Kind: llm.ImagePart, Type: "image/png", Name: "lost.png"},
				},
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
		w.want(bot.Notice, "The server srv asked for your city; it was declined.", "srv:draw · map.png", "srv:draw made the file lost.png, but it could not be stored here, so I cannot send it.")
		rows, err := w.store.Due(t.Context(), "test", "7", time.Now(), 0)
		if err != nil {
			t.Error(err)
		}
		for _, row := range rows {
			if f := row.Content.File; f != nil && (f.Hash != "ab12" || f.Size != 3 || f.Data != nil) {
				t.Errorf("file %+v", f)
			}
		}
		w.want(bot.Final, "done")
	})
}

// TestQuotaConcernsOne: in a group a used-up quota is said to the person who has used it up, in private as ever.
func TestQuotaConcernsOne(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.meter.refuse = "used up"
		d := w.start()
		w.accept(d, w.group("-5", "ann", "hello"))
		w.accept(d, w.private("ben", "hello"))
		pass(time.Second)
		due, err := w.store.Due(t.Context(), "test", "7", time.Now(), 0)
		if err != nil {
			t.Fatal(err)
		}
		only := map[string]string{}
		for _, row := range due {
			only[row.Place.Chat] = row.Content.Only
		}
		if len(only) == 0 || only["-5"] != "ann" || only["ben"] != "" {
			t.Errorf("shown only to %v", only)
		}
	})
}

// TestPicturesOfAResultAreOneAlbum: what a channel shows alike goes out together, what was not kept is only named, and
// an album stays within its limits.
func TestPicturesOfAResultAreOneAlbum(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		part := func(kind, name string, size int64) llm.Part {
			return llm.Part{Kind: llm.ImagePart, Type: kind, Name: name, Hash: "ab12", Size: size}
		}
		parts := []llm.Part{
			part("image/png", "a.png", 3), part("image/jpeg", "b.jpg", 3), part("application/pdf", "c.pdf", 3),
			part("image/png", "d.png", 40<<20), part("image/png", "e.png", 40<<20),
		}
		for range 11 {
			parts = append(parts, part("audio/mpeg", "s.mp3", 1))
		}
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			if _, err := log.Load(ctx, room); err != nil {
				return agent.Outcome{}, err
			}
			entry := journal.Entry{Turn: turn.ID, Kind: journal.ResultEntry, Call: "c1_0", Tool: "srv:draw", Text: "[images]", Parts: parts}
			if _, err := log.Append(ctx, entry); err != nil {
				return agent.Outcome{}, err
			}
			return answered(turn, "done"), nil
		}
		w.accept(w.start(), w.private("ann", "draw"))
		pass(time.Minute)
		ten := strings.Repeat(", s.mp3", 10)[2:]
		w.want(bot.Notice, "srv:draw · a.png, b.jpg", "srv:draw · c.pdf", "srv:draw · d.png", "srv:draw · e.png", "srv:draw · "+ten, "srv:draw · s.mp3")
		rows, err := w.store.Due(t.Context(), "test", "7", time.Now(), 0)
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, row := range rows {
			files += len(row.Content.Files())
		}
		if files != len(parts) {
			t.Errorf("%d of %d files go out", files, len(parts))
		}
	})
}
