package sql_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

// begun opens a store that may not be usable any more when the test ends.
func begun(t *testing.T, path string) *sql.Store {
	t.Helper()
	store, err := sql.Open(t.Context(), sql.Options{Path: path, Log: zerolog.Nop()})
	check(t, err)
	t.Cleanup(func() { _ = store.Close() }) // its files may be gone
	return store
}

// fill commits n facts, each alone.
func fill(t *testing.T, store *sql.Store, from, n int) {
	t.Helper()
	for i := range n {
		_, err := store.Apply(t.Context(), fact(strconv.Itoa(from+i)))
		check(t, err)
	}
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Close())
	}
	return errors.Join(err, in.Close())
}

// TestEveryCommitRaisesTheMark looks at commits that give a number to something, which they count by, and at those that
// do not.
func TestEveryCommitRaisesTheMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	mark := func() string { // of a fixed width, so that texts compare like the numbers
		raw, err := os.ReadFile(path + "-mark")
		check(t, err)
		return string(raw)
	}
	arrival := bot.Arrival{Channel: "c", Bot: "b", ID: "1", Session: "s"}
	sent := bot.RowUpdate{ID: 1, From: []bot.RowState{bot.Pending}, To: bot.Sent}
	for _, step := range []struct {
		name   string
		change *bot.Change
	}{
		{"a fact", fact("k")},
		{"an arrival", &bot.Change{Arrive: []bot.Arrival{arrival}}},
		{"the same arrival again", &bot.Change{Arrive: []bot.Arrival{arrival}}},
		{"a row", &bot.Change{Send: []bot.Row{{Session: "s", Key: "k"}}}},
		{"its delivery", &bot.Change{Rows: []bot.RowUpdate{sent}}},
		{"a question", &bot.Change{Ask: []bot.Approval{{ID: "q", Session: "s"}}}},
		{"its decision", &bot.Change{Decide: []bot.Decision{{ID: "q", State: bot.Denied}}}},
		{"two rows", &bot.Change{Send: []bot.Row{{Session: "s"}, {Session: "s"}}}},
		{"a claim", &bot.Change{Claim: &bot.Claim{Session: "s", Owner: "o"}}},
	} {
		before := mark()
		_, err := store.Apply(t.Context(), step.change)
		check(t, err)
		if after := mark(); after <= before {
			t.Errorf("%s: the mark was %q and is %q", step.name, before, after)
		}
	}
}

// TestAttackDatabaseSetBack: a database that has less than it once had is not opened as if nothing had happened.
func TestAttackDatabaseSetBack(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"replaced by an older copy": func(path string) error {
			return os.Rename(path+".copy", path)
		},
		"replaced by another": func(path string) error {
			return copyFile(path+".other", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "z.db")
			other := begun(t, path+".other")
			fill(t, other, 0, 9)
			check(t, other.Close())
			store := begun(t, path)
			fill(t, store, 0, 2)
			check(t, store.Close())
			check(t, copyFile(path, path+".copy"))
			store = begun(t, path)
			fill(t, store, 2, 2)
			check(t, store.Close())
			check(t, damage(path))

			_, err := sql.Open(t.Context(), sql.Options{Path: path, Log: zerolog.Nop()})
			var gone *sql.Unavailable
			if !errors.As(err, &gone) || !strings.Contains(err.Error(), "-mark") {
				t.Fatalf("opened, or not said what to do: %v", err)
			}
			check(t, os.Remove(path+"-mark")) // the operator's word
			fill(t, begun(t, path), 100, 1)
		})
	}
}

// TestAttackWriteAheadLogRemoved: what is committed and still in the write-ahead log is missed when that file is gone.
func TestAttackWriteAheadLogRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "z.db")
	store := begun(t, path)
	fill(t, store, 0, 3)
	// What a process leaves that is killed: copies of its files, with the last commits in the write-ahead log alone.
	left := filepath.Join(dir, "left.db")
	for _, suffix := range []string{"", "-wal", "-mark"} {
		check(t, copyFile(path+suffix, left+suffix))
	}
	whole := begun(t, left)
	if !has(t, whole, "2") {
		t.Fatal("the copies are not what a killed process leaves")
	}
	check(t, whole.Close())
	for _, suffix := range []string{"", "-mark"} {
		check(t, copyFile(path+suffix, left+suffix))
	}
	if _, err := sql.Open(t.Context(), sql.Options{Path: left, Log: zerolog.Nop()}); err == nil {
		t.Error("opened with less than it had")
	}
}

// TestAttackDatabaseUnderUs: files that are removed, emptied or replaced while the service works end all storing, and
// what was committed before is there, or is missed, at the next start.
func TestAttackDatabaseUnderUs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		damage func(path string) error
		kept   bool // all of it is saved
	}{
		"write-ahead log removed": {func(path string) error { return os.Remove(path + "-wal") }, true},
		"shared memory removed":   {func(path string) error { return os.Remove(path + "-shm") }, true},
		"write-ahead log replaced": {func(path string) error {
			check(t, copyFile(path+"-wal", path+".new"))
			return os.Rename(path+".new", path+"-wal")
		}, true},
		"write-ahead log emptied": {func(path string) error { return os.Truncate(path+"-wal", 0) }, false},
		"database removed":        {os.Remove, false},
		"database emptied":        {func(path string) error { return os.Truncate(path, 0) }, false},
		"database replaced": {func(path string) error {
			check(t, copyFile(path, path+".new"))
			return os.Rename(path+".new", path)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "z.db")
			store := begun(t, path)
			fill(t, store, 0, 5)
			check(t, tc.damage(path))
			for range 2 {
				_, err := store.Apply(t.Context(), fact("after"))
				if _, ok := errors.AsType[*sql.Unavailable](err); !ok {
					t.Fatalf("stored: %v", err)
				}
			}
			if store.Healthy(t.Context()) == nil {
				t.Error("the store says that it is well")
			}
			_ = store.Close()
			again, err := sql.Open(t.Context(), sql.Options{Path: path, Log: zerolog.Nop()})
			switch {
			case err != nil && tc.kept:
				t.Errorf("what could be saved is lost: %v", err)
			case err == nil:
				t.Cleanup(func() { _ = again.Close() })
				if !has(t, again, "4") || has(t, again, "after") {
					t.Error("the next start goes on with less, and does not say so")
				}
			}
		})
	}
}

// TestFullAndBack: a full disk refuses what comes, says so, and is over by itself.
func TestFullAndBack(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	fill(t, store, 0, 1)
	check(t, store.OnWriter(t.Context(), "PRAGMA max_page_count = 1"))
	big := fact("big")
	big.Facts[0].Value = strings.Repeat("x", 1<<20)
	_, err := store.Apply(t.Context(), big)
	var full *sql.Unavailable
	if !errors.As(err, &full) || !strings.Contains(full.Advice().String(), "disk is full") || strings.Contains(full.Advice().String(), "/") {
		t.Fatalf("got %v", err)
	}
	// The failure dropped the connection, and its limit with it: the next commit finds room, and Healthy makes one to
	// find out.
	check(t, store.Healthy(t.Context()))
	if _, err := store.Apply(t.Context(), big); err != nil {
		t.Errorf("not over: %v", err)
	}
}
