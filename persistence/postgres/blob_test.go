package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// put keeps a text as a file of a session and gives its hash.
func put(t *testing.T, store *postgres.Store, session, text string) string {
	t.Helper()
	ref, err := store.Put(t.Context(), session, bytes.NewReader([]byte(text)))
	check(t, err)
	return ref.Hash
}

// has says whether the session can read the file.
func has(t *testing.T, store *postgres.Store, session, hash string) bool {
	t.Helper()
	r, err := store.Open(t.Context(), session, hash)
	if errors.Is(err, blob.ErrNotFound) {
		return false
	}
	check(t, err)
	_, err = io.ReadAll(r)
	check(t, errors.Join(err, r.Close()))
	return true
}

func TestFilesGoWithTheirTimeAndTheirConversation(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	now := start
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	store := open(t, postgres.Options{URL: url, Now: func() time.Time { return now }, BlobBytes: 1000})
	said, shared := put(t, store, "a", "said"), put(t, store, "a", "shared")
	put(t, store, "b", "shared")
	entries := []journal.Entry{{Turn: "t", Kind: journal.UserEntry, At: start}, {Kind: journal.ResetEntry, At: start.Add(day)}}
	_, err := store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: "a", Entries: entries}})
	check(t, err)
	now = start.Add(2 * day)
	later := put(t, store, "a", "said after the reset")
	sweep := func(at time.Duration, keep keeping.Retention, want int64) {
		t.Helper()
		swept, err := store.Sweep(t.Context(), start.Add(at), keep)
		if err != nil || swept.Blobs != want {
			t.Errorf("sweep after %v: %d files (%v), want %d", at, swept.Blobs, err, want)
		}
	}
	want := func(session, hash string, want bool) {
		t.Helper()
		if got := has(t, store, session, hash); got != want {
			t.Errorf("%s has %.8s: %t, want %t", session, hash, got, want)
		}
	}
	sweep(1000*day, keeping.Retention{}, 0) // nothing is bounded
	sweep(61*day-1, keeping.Retention{Journal: 60 * day}, 0)
	sweep(61*day, keeping.Retention{Journal: 60 * day}, 2)
	want("a", said, false)
	want("a", shared, false)
	want("b", shared, true)
	want("a", later, true)
	sweep(30*day, keeping.Retention{Blobs: 30 * day}, 1)
	want("b", shared, false)
	want("a", later, true)
	sweep(32*day, keeping.Retention{Blobs: 30 * day}, 1)
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	var left int
	check(t, conn.QueryRow(t.Context(), "SELECT (SELECT COUNT(*) FROM blob) + (SELECT COUNT(*) FROM blob_piece) + (SELECT COUNT(*) FROM blob_ref)").Scan(&left))
	if left != 0 {
		t.Errorf("%d rows are left", left)
	}
	put(t, store, "c", string(make([]byte, 1000))) // all of the room is there again
}

func TestFilesMoveWithTheirChat(t *testing.T) {
	t.Parallel()
	store := fresh(t)
	const from, to, other = "telegram/1/bot/-100/0/42", "telegram/1/bot/-200/0/42", "telegram/1/bot/-1000/0/42"
	old, both, kept := put(t, store, from, "old"), put(t, store, from, "both"), put(t, store, other, "kept")
	put(t, store, to, "both")
	_, err := store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "1", From: "-100", To: "-200"}})
	check(t, err)
	for _, test := range []struct {
		session, hash string
		want          bool
	}{{from, old, false}, {from, both, false}, {to, old, true}, {to, both, true}, {other, kept, true}} {
		if got := has(t, store, test.session, test.hash); got != test.want {
			t.Errorf("%.8s in %s: %t, want %t", test.hash, test.session, got, test.want)
		}
	}
}
