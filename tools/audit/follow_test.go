package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// TestFollow: every line that is added is read once, over any number of rotations between two looks.
func TestFollow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	early, err := audit.Follow(path, false)
	if err != nil {
		t.Fatal(err)
	}
	l, c := days(t, path, 1, audit.Options{})
	late, err := audit.Follow(path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = early.Close(), late.Close() })
	calls := func(f *audit.Follower) (n int) {
		t.Helper()
		err := f.Next(func(l *audit.Line) {
			if l.Broken != "" {
				t.Errorf("%s:%d is broken: %s", l.File, l.Number, l.Broken)
			}
			if l.Kind == "" {
				n++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if a, b := calls(early), calls(late); a != 2 || b != 0 {
		t.Errorf("at the start: %d, %d", a, b)
	}
	record(l, 1)
	if a, b := calls(early), calls(late); a != 1 || b != 1 {
		t.Errorf("one line: %d, %d", a, b)
	}
	for range 3 {
		record(l, 1)
		c.add(24 * time.Hour)
	}
	record(l, 1)
	if a, b := calls(early), calls(late); a != 4 || b != 4 {
		t.Errorf("over three rotations: %d, %d", a, b)
	}
	if calls(early) != 0 {
		t.Error("lines are repeated")
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	var broken []string
	if err := early.Next(func(l *audit.Line) { broken = append(broken, l.Broken) }); err != nil || len(broken) != 1 {
		t.Errorf("a file that was cut: %q, %v", broken, err)
	}
}

// TestLastAndMerge: the last lines are found from the end, and several logs are read in the order of their times.
func TestLastAndMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")}
	a, clockA := days(t, paths[0], 3, audit.Options{})
	_, _ = days(t, paths[1], 5, audit.Options{})
	clockA.add(time.Second)
	a.Record(by("telegram:9", `{"text":"late"}`), &tools.Result{}, nil)
	last, err := audit.Last(t.Context(), paths[0], 3, time.Time{}, func(l *audit.Line) bool { return l.Kind == "" })
	if err != nil || len(last) != 3 || string(last[2].Args) != `{"text":"late"}` || last[0].Tool != "echo" {
		t.Fatalf("%+v, %v", last, err)
	}
	var order []string
	since := time.Date(2026, 3, 5, 4, 6, 7, 0, time.UTC)
	err = audit.Merge(t.Context(), paths, since, func(log int, l *audit.Line) error {
		if l.Kind == "" {
			order = append(order, l.Time.Format("02")+string(rune('a'+log)))
		}
		return nil
	})
	if want := "05a 05a 05b 05b 06a 06a 06b 06b 06a 07b 07b 08b 08b"; err != nil || strings.Join(order, " ") != want {
		t.Errorf("%s, want %s (%v)", strings.Join(order, " "), want, err)
	}
	if !slices.IsSortedFunc(last, func(a, b audit.Line) int { return a.Time.Compare(b.Time) }) {
		t.Error("the last lines are not in order")
	}
}
