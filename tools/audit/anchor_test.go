package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// memory is an anchor in memory, which outlives the logs that use it.
type memory struct {
	mu   sync.Mutex
	mark audit.Mark
	set  bool
}

func (m *memory) Load() (audit.Mark, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mark, m.set, nil
}

func (m *memory) Save(mark audit.Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mark, m.set = mark, true
	return nil
}

// anchored opens a log whose mark is kept.
func anchored(t *testing.T, path string, anchor audit.Anchor) *audit.Log {
	t.Helper()
	l, err := audit.New(audit.Options{Path: path, ID: "w", Now: newClock().Now, Log: zerolog.Nop(), Required: true, Anchor: anchor})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // closed by the test already, where its outcome matters
	return l
}

// record writes n calls.
func record(l *audit.Log, n int) {
	for i := range n {
		l.Record(call(i), &tools.Result{}, nil)
	}
}

// problems verifies the whole chain at the path against the mark.
func problems(t *testing.T, path string, m *memory) []audit.Problem {
	t.Helper()
	names, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	files := make([]audit.File, 0, len(names))
	for _, name := range names {
		files = append(files, audit.File{Name: filepath.Base(name), Reader: strings.NewReader(read(t, name))})
	}
	report, err := audit.Verify(&m.mark, files...)
	if err != nil {
		t.Fatal(err)
	}
	return report.Problems
}

// rewrite creates a log with other calls in it, each line sealed correctly, as an attacker who knows the format would.
func rewrite(t *testing.T, path string, n int) {
	t.Helper()
	forged := filepath.Join(t.TempDir(), "forged.jsonl")
	l := open(t, forged)
	for i := range n {
		l.Record(call(100+i), &tools.Result{}, nil)
	}
	closeLog(t, l)
	if err := os.WriteFile(path, []byte(read(t, forged)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// damages returns what somebody may do to the file.
func damages(t *testing.T) map[string]func(path string) error {
	return map[string]func(path string) error{
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"removed": os.Remove,
		"cut at a line": func(path string) error {
			text := read(t, path)
			return os.Truncate(path, int64(strings.LastIndex(strings.TrimSpace(text), "\n")+1))
		},
		"cut in a line": func(path string) error { return os.Truncate(path, int64(len(read(t, path))-20)) },
		"rewritten, as long": func(path string) error {
			rewrite(t, path, 3)
			return nil
		},
		"rewritten, longer": func(path string) error {
			rewrite(t, path, 9)
			return nil
		},
		"replaced by another": func(path string) error {
			other := path + ".other"
			rewrite(t, other, 4)
			return os.Rename(other, path)
		},
	}
}

// TestAttackDamage: after any change of the file, while the service runs or not, the log is never valid again.
func TestAttackDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range damages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("while nobody writes", func(t *testing.T) {
				t.Parallel()
				path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
				l := anchored(t, path, m)
				record(l, 3)
				closeLog(t, l)
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(path); err == nil && len(problems(t, path, m)) == 0 {
					t.Error("not found before the next start")
				}
				l = anchored(t, path, m)
				record(l, 2)
				closeLog(t, l)
				if len(problems(t, path, m)) == 0 {
					t.Errorf("not found after the next start:\n%s", read(t, path))
				}
			})
			t.Run("while it is written", func(t *testing.T) {
				t.Parallel()
				path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
				l := anchored(t, path, m)
				record(l, 3)
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
				record(l, 2)
				closeLog(t, l)
				if len(problems(t, path, m)) == 0 {
					t.Errorf("not found:\n%s", read(t, path))
				}
			})
		})
	}
}

// TestRotation: files that are moved away, while the service runs or not, remain one chain.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir, m := t.TempDir(), &memory{}
	path := filepath.Join(dir, "audit.jsonl")
	l := anchored(t, path, m)
	record(l, 3)
	if err := os.Rename(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	record(l, 2)
	closeLog(t, l)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l = anchored(t, path, m)
	record(l, 1)
	closeLog(t, l)
	names, err := audit.Files(path)
	if err != nil || !slices.Equal(names, []string{path + ".2", path + ".1", path}) {
		t.Errorf("the files are %q: %v", names, err)
	}
	if found := problems(t, path, m); found != nil {
		t.Errorf("a rotated log has problems: %v", found)
	}
	if want := int64(3 + 2 + 1 + 2); m.mark.Lines != want {
		t.Errorf("the mark counts %d lines, want %d with the markers", m.mark.Lines, want)
	}
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	if len(problems(t, path, m)) == 0 {
		t.Error("a file of the chain is missing, and no problem was reported")
	}
}

// TestMarkBehind: the mark may be behind the file by what a crash left no time for.
func TestMarkBehind(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l := anchored(t, path, m)
	record(l, 2)
	closeLog(t, l)
	before := m.mark
	l = anchored(t, path, m)
	record(l, 2)
	closeLog(t, l)
	m.mark = before
	if found := problems(t, path, m); found != nil {
		t.Errorf("lines after the mark are taken for damage: %v", found)
	}
	l = anchored(t, path, m)
	record(l, 1)
	closeLog(t, l)
	if found := problems(t, path, m); found != nil || m.mark.Lines != 5 {
		t.Errorf("after a start: %v, mark %+v", found, m.mark)
	}
}

// TestStartedLine: a call that may change something has a line before it runs, with who allowed it. A call that only
// reads has none.
func TestStartedLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	change, look, foreign := call(1), call(2), call(3)
	change.Trail = &tools.Trail{Rule: "permissions.echo[0]", ApprovedBy: "telegram:7"}
	look.Def.ReadOnly = true
	foreign.Def.ReadOnly, foreign.Def.Server = true, "files"
	for _, c := range []*tools.Call{change, look, foreign} {
		if err := l.Started(c); err != nil {
			t.Fatal(err)
		}
	}
	list := lines(t, read(t, path))
	if len(list) != 2 || list[0]["kind"] != "started" || list[0]["approved_by"] != "telegram:7" || list[1]["call"] != "call-3" {
		t.Errorf("started: %v", list)
	}
}

// failing is a destination that can be out of order.
type failing struct {
	broken bool
	text   strings.Builder
}

func (f *failing) Write(p []byte) (int, error) {
	if f.broken {
		return 0, errors.New("no space left on device")
	}
	return f.text.Write(p)
}

// TestRequired: without a record nothing is run, and nothing that was read comes out.
func TestRequired(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{true, false} {
		out := &failing{broken: true}
		l, err := audit.New(audit.Options{Writer: out, Now: newClock().Now, Log: zerolog.Nop(), Required: required})
		if err != nil {
			t.Fatal(err)
		}
		run := func(readOnly bool) (string, error) {
			c := call(1)
			c.Def.ReadOnly = readOnly
			res, err := l.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) {
				if err := l.Started(c); err != nil {
					return nil, err
				}
				return &tools.Result{Text: "done"}, nil
			})(t.Context(), c)
			if err != nil {
				return "", err
			}
			return res.Text, nil
		}
		for _, readOnly := range []bool{true, false} {
			text, err := run(readOnly)
			if refused := err != nil; refused != required || !refused && text != "done" {
				t.Errorf("required %t, read only %t: %q, %v", required, readOnly, text, err)
			}
			if e := tools.AsError(err); required && (e.Category != tools.PolicyBlocked || !e.Denied() || !strings.Contains(e.Message, "audit log")) {
				t.Errorf("the model is told %+v", e)
			}
		}
		out.broken = false
		if text, err := run(true); err != nil || text != "done" {
			t.Errorf("after the repair: %q, %v", text, err)
		}
		if !strings.Contains(out.text.String(), `"lost":`) {
			t.Errorf("what was lost is not accounted for: %s", out.text.String())
		}
	}
}

// TestRefusedReadLosesNothing: a call that only read is refused too if its line fails after it ran.
func TestRefusedReadLosesNothing(t *testing.T) {
	t.Parallel()
	out := &failing{}
	l, err := audit.New(audit.Options{Writer: out, Now: newClock().Now, Log: zerolog.Nop(), Required: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		c := call(1)
		c.Def.ReadOnly = readOnly
		res, err := l.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) {
			out.broken = true
			return &tools.Result{Text: "done"}, nil
		})(t.Context(), c)
		if readOnly && err == nil {
			t.Error("what was read comes out without a record")
		}
		if !readOnly && (err != nil || res.Text != "done") {
			t.Errorf("the outcome of a change is hidden: %v", err)
		}
	}
}
