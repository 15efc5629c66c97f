package storetest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
)

// FileStore is a store whose files belong to its conversations.
type FileStore interface {
	bot.Writer
	blob.Store
	Sweep(ctx context.Context, now time.Time, keep keeping.Retention) (keeping.Swept, error)
}

// FileRows counts the rows of a table of files: blob, blob_piece or blob_ref.
type FileRows func(table string) int

// Files runs the suite of files that go and move with their conversations. open gives an empty store that asks now for
// the time and holds at most limit bytes, 0 = as many as there are; it lives as long as its test.
func Files(t *testing.T, open func(t *testing.T, now func() time.Time, limit int64) (FileStore, FileRows)) {
	t.Helper()
	t.Run("they go with their time and their conversation", func(t *testing.T) {
		t.Parallel()
		filesGo(t, open)
	})
	t.Run("they move with their chat", func(t *testing.T) {
		t.Parallel()
		store, _ := open(t, time.Now, 0)
		filesMove(&files{T: t, Store: store}, store)
	})
}

const day = 24 * time.Hour

// opens wants that the session can read the file, or cannot.
func (f *files) opens(session, hash string, want bool) {
	f.Helper()
	r, err := f.Open(f.Context(), session, hash)
	if err == nil {
		_, err = io.ReadAll(r)
		err = errors.Join(err, r.Close())
	} else if errors.Is(err, blob.ErrNotFound) && !want {
		return
	}
	if err != nil || !want {
		f.Errorf("%s opens %.8s: %v, want %t", session, hash, err, want)
	}
}

func filesGo(t *testing.T, open func(t *testing.T, now func() time.Time, limit int64) (FileStore, FileRows)) {
	t.Helper()
	begun := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	now := begun
	store, rows := open(t, func() time.Time { return now }, 1000)
	f := &files{T: t, Store: store}
	said, shared := f.put("a", []byte("said")), f.put("a", []byte("shared"))
	f.put("b", []byte("shared"))
	entries := []journal.Entry{
		{Turn: "t", Kind: journal.UserEntry, At: begun}, {Kind: journal.ResetEntry, At: begun.Add(day)},
	}
	if _, err := store.Apply(t.Context(), &bot.Change{
		Append: &bot.Append{Session: "a", Entries: entries},
	}); err != nil {
		t.Fatal(err)
	}
	now = begun.Add(2 * day)
	later := f.put("a", []byte("said after the reset"))
	sweep := func(at time.Duration, keep keeping.Retention, want int64) {
		t.Helper()
		swept, err := store.Sweep(t.Context(), begun.Add(at), keep)
		if err != nil || swept.Blobs != want {
			t.Errorf("sweep after %v: %d files (%v), want %d", at, swept.Blobs, err, want)
		}
	}
	sweep(1000*day, keeping.Retention{}, 0) // nothing is bounded
	sweep(61*day-1, keeping.Retention{Journal: 60 * day}, 0)
	sweep(61*day, keeping.Retention{Journal: 60 * day}, 2)
	f.opens("a", said, false)
	f.opens("a", shared, false)
	f.opens("b", shared, true)
	f.opens("a", later, true)
	sweep(30*day-1, keeping.Retention{Blobs: 30 * day}, 0)
	sweep(30*day, keeping.Retention{Blobs: 30 * day}, 1)
	f.opens("b", shared, false)
	f.opens("a", later, true)
	sweep(32*day, keeping.Retention{Blobs: 30 * day}, 1)
	for _, table := range []string{"blob", "blob_piece", "blob_ref"} {
		if n := rows(table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
	f.put("c", make([]byte, 1000)) // all of the room is there again
}

func filesMove(f *files, store bot.Writer) {
	f.Helper()
	const from, to, other = "telegram/1/bot/-100/0/42", "telegram/1/bot/-200/0/42", "telegram/1/bot/-1000/0/42"
	old, both, kept := f.put(from, []byte("old")), f.put(from, []byte("both")), f.put(other, []byte("kept"))
	f.put(to, []byte("both"))
	move := &bot.Move{Channel: "telegram", Bot: "1", From: "-100", To: "-200"}
	if _, err := store.Apply(f.Context(), &bot.Change{Move: move}); err != nil {
		f.Fatal(err)
	}
	f.opens(from, old, false)
	f.opens(from, both, false)
	f.opens(to, old, true)
	f.opens(to, both, true)
	f.opens(other, kept, true)
}
