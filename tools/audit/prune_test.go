package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/audit"
)

// days writes a log that is rotated every day, with two calls a day.
func days(t *testing.T, path string, n int, o audit.Options) (*audit.Log, *clock) {
	t.Helper()
	c := newClock()
	return daysFrom(t, c, path, n, o), c
}

func daysFrom(t *testing.T, c *clock, path string, n int, o audit.Options) *audit.Log {
	t.Helper()
	o.Path, o.ID, o.Now, o.Log, o.Rotation = path, "w", c.Now, zerolog.Nop(), audit.Rotation{Daily: true}
	l, err := audit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for i := range n {
		if i > 0 {
			c.add(24 * time.Hour)
		}
		record(l, 2)
	}
	return l
}

// TestPrune: old files are removed, verify knows until when, and a file that somebody removes is still missed.
func TestPrune(t *testing.T) {
	t.Parallel()
	for _, marked := range []bool{true, false} {
		t.Run(fmt.Sprintf("with a mark %t", marked), func(t *testing.T) {
			t.Parallel()
			path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
			o := audit.Options{}
			if marked {
				o.Anchor = m
			}
			l, c := days(t, path, 6, o)
			if names, err := audit.Files(path); err != nil || len(names) != 6 {
				t.Fatalf("%q, %v", names, err)
			}
			if r := report(t, path, m); len(r.Problems) > 0 || r.Lines != 6*2+5 {
				t.Fatalf("before: %+v", r)
			}
			done, err := l.Prune(t.Context(), c.Now().AddDate(0, 0, -3))
			if err != nil || done.Files != 2 || done.Lines != 5 || done.Until != "2026-03-05T04:06:07.008Z" {
				t.Fatalf("%+v, %v", done, err)
			}
			if again, err := l.Prune(t.Context(), c.Now().AddDate(0, 0, -3)); err != nil || again.Files != 0 {
				t.Errorf("again: %+v, %v", again, err)
			}
			c.add(24 * time.Hour)
			record(l, 2)
			if done, err = l.Prune(t.Context(), c.Now().AddDate(0, 0, -3)); err != nil || done.Files != 1 || done.Lines != 8 {
				t.Fatalf("%+v, %v", done, err)
			}
			closeLog(t, l)
			r := report(t, path, m)
			if len(r.Problems) > 0 || r.Removed == nil || r.Removed.Lines != 8 || r.Removed.Until != "2026-03-06T04:06:07.008Z" {
				t.Fatalf("after: %+v", r)
			}
			names, err := audit.Files(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(names[0]); err != nil {
				t.Fatal(err)
			}
			if r := report(t, path, m); len(r.Problems) == 0 || r.Problems[0].Kind != audit.Missing || r.Problems[0].Line != 1 {
				t.Errorf("a file that somebody removed is not missed: %+v", r)
			}
		})
	}
}

// TestPruneKilled: a kill after the account leaves files that are still valid, and that the next call removes.
func TestPruneKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &snapshots{t: t, dir: dir}
	l, c := days(t, filepath.Join(dir, "audit.jsonl"), 4, audit.Options{Anchor: m})
	m.list = nil
	if _, err := l.Prune(t.Context(), c.Now().AddDate(0, 0, -1)); err != nil || len(m.list) != 1 {
		t.Fatalf("%d snapshots, %v", len(m.list), err)
	}
	path := filepath.Join(m.list[0], "audit.jsonl")
	if r := report(t, path, &m.memory); len(r.Problems) > 0 || r.Removed != nil {
		t.Errorf("after the kill: %+v", r)
	}
	if names, err := audit.Files(path); err != nil {
		t.Fatal(err)
	} else if err := os.Remove(names[0]); err != nil { // killed between two files
		t.Fatal(err)
	}
	if r := report(t, path, &m.memory); len(r.Problems) > 0 || r.Removed == nil {
		t.Errorf("killed between two files: %+v", r)
	}
	done, err := audit.Prune(t.Context(), audit.Options{Path: path, Now: c.Now}, c.Now().AddDate(0, 0, -1))
	if err != nil || done.Files != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if r := report(t, path, &m.memory); len(r.Problems) > 0 || r.Removed == nil {
		t.Errorf("completed: %+v", r)
	}
}

// TestPruneIdle: the log of a writer that is gone loses all its lines; the account remains, and is not rotated again.
func TestPruneIdle(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l, c := days(t, path, 2, audit.Options{Anchor: m})
	closeLog(t, l)
	c.add(40 * 24 * time.Hour)
	for i := range 3 {
		done, err := audit.Prune(t.Context(), audit.Options{Path: path, Now: c.Now}, c.Now().AddDate(0, 0, -30))
		if err != nil || (i == 0) != (done.Files == 2) {
			t.Errorf("%d: %+v, %v", i, done, err)
		}
		c.add(40 * 24 * time.Hour)
	}
	if r := report(t, path, &memory{}); len(r.Problems) > 0 || r.Lines != 2 || r.Removed == nil || r.Removed.Lines != 5 {
		t.Errorf("%+v", r)
	}
}

// TestRotationKilled: a process that dies between the two steps of a rotation, with a mark of any age, leaves a chain
// that the next one continues.
func TestRotationKilled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ moves, mark int }{
		"right after the move":         {1, 1},
		"the mark is one file behind":  {2, 1},
		"the mark is two files behind": {3, 1},
		"a mark in the same file":      {1, 0},
		"no mark at all":               {2, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
			l, c := days(t, path, 1, audit.Options{Anchor: m})
			closeLog(t, l)
			kept := m.mark
			c.add(time.Hour)
			l = daysFrom(t, c, path, tc.moves, audit.Options{Anchor: m})
			closeLog(t, l)
			c.add(time.Hour)
			if err := os.Rename(path, path+"."+c.Now().UTC().Format("20060102T150405.000")); err != nil {
				t.Fatal(err)
			}
			switch tc.mark {
			case 1:
				m.mark = kept
			case -1:
				*m = memory{}
			}
			l = anchored(t, path, m)
			record(l, 1)
			closeLog(t, l)
			if r := report(t, path, m); len(r.Problems) > 0 || int64(r.Lines) != m.mark.Lines {
				t.Errorf("%+v, mark %+v", r, m.mark)
			}
		})
	}
}
