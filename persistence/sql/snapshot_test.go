package sql_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/persistence/sql"
)

// TestSnapshot copies a database while it is written: each copy is whole, opens with its mark, and goes on from there.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "z.db")
	if _, err := sql.Snapshot(t.Context(), path, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no database: %v", err)
	}
	store := open(t, sql.Options{Path: path})
	fill(t, store, 0, 20)
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 60 {
			if _, err := store.Apply(t.Context(), fact(strconv.Itoa(1000+i))); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 3 {
		to := filepath.Join(dir, strconv.Itoa(i), "z.db")
		check(t, os.Mkdir(filepath.Dir(to), 0o700))
		c, err := sql.Snapshot(t.Context(), path, to)
		check(t, err)
		if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) != 1 {
			t.Errorf("beside the copy: %v, %v", entries, err)
		}
		if known, err := sql.KnownSchema(); err != nil || c.Schema != known || known < 2 {
			t.Errorf("schema %d of %d, %v", c.Schema, known, err)
		}
		check(t, os.WriteFile(to+"-mark", c.Mark, 0o600))
		restored := begun(t, to)
		fill(t, restored, 5000, 1)
		if mark, err := os.ReadFile(to + "-mark"); err != nil || string(mark) <= string(c.Mark) || strings.Fields(string(mark))[0] != strings.Fields(string(c.Mark))[0] {
			t.Errorf("mark %q after %q, %v", mark, c.Mark, err)
		}
	}
	writing.Wait()
	fill(t, store, 9000, 1) // nothing that was copied is in the way of the one who writes
}

// TestSnapshotOfAnother: a file that is no database of ours is refused with a reason.
func TestSnapshotOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "z.db")
	check(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 100)), 0o600))
	var gone *sql.Unavailable
	if _, err := sql.Snapshot(t.Context(), path, filepath.Join(dir, "copy")); !errors.As(err, &gone) {
		t.Errorf("copied: %v", err)
	}
	if _, err := sql.ReadCopy(t.Context(), path); !errors.As(err, &gone) {
		t.Errorf("read: %v", err)
	}
	store, err := sql.Open(t.Context(), sql.Options{Path: filepath.Join(dir, "newer.db"), Log: zerolog.Nop()})
	check(t, err)
	check(t, store.OnWriter(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"))
	check(t, store.Close())
	if _, err := sql.Snapshot(t.Context(), filepath.Join(dir, "newer.db"), filepath.Join(dir, "copy")); !errors.As(err, &gone) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer one: %v", err)
	}
}
