package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// ann is the person who is removed in these tests.
func ann(receipt string) audit.Person {
	return audit.Person{
		IDs: []string{"telegram:42", "@ann", `A"nn`}, Pseudonym: "erased:7f3a", Receipt: receipt,
		Session: func(key string) string { return strings.ReplaceAll(key, "/42", "/erased") },
	}
}

// by returns a call of a caller.
func by(caller, args string) *tools.Call {
	c := toolstest.Call("echo", args)
	c.Origin.Caller, c.Origin.Session = caller, "telegram/7/0/"+strings.TrimPrefix(caller, "telegram:")+"/0/0"
	c.Trail = &tools.Trail{}
	return c
}

// people writes a log of two rotated files and a live one, in which two people make calls.
func people(t *testing.T, path string, m *memory) *audit.Log {
	t.Helper()
	l, err := audit.New(audit.Options{
		Path: path, ID: "w", Now: newClock().Now, Log: zerolog.Nop(), Anchor: m, Rotation: audit.Rotation{MaxBytes: 3000},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for i := range 12 {
		l.Record(by("telegram:42", fmt.Sprintf(`{"text":"mail @ann number %d"}`, i)), &tools.Result{}, nil)
		l.Record(by("telegram:421", `{"text":"tell @anna and A\"nn and telegram:42 too"}`), &tools.Result{}, nil)
		approved := by("telegram:9", `{"text":"hello"}`)
		approved.Trail.ApprovedBy = "telegram:42"
		l.Record(approved, nil, errors.New("telegram:42 was not there"))
		l.Record(by("telegram:9", `{"n":1.50,"x":"<&>"}`), &tools.Result{}, nil)
	}
	return l
}

// all returns the text of all files of a chain.
func all(t *testing.T, path string) string {
	t.Helper()
	names, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range names {
		text.WriteString(read(t, name))
	}
	return text.String()
}

// report verifies a chain against its mark.
func report(t *testing.T, path string, m *memory) audit.Report {
	t.Helper()
	mark, known, err := m.Load()
	if err != nil {
		t.Fatal(err)
	}
	of := &mark
	if !known {
		of = nil
	}
	r, _, err := audit.VerifyLog(path, of)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPseudonymise: nothing names the person any more, nobody else is changed, and the chain proves the rest.
func TestPseudonymise(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l := people(t, path, m)
	before := report(t, path, m)
	done, err := l.Pseudonymise(t.Context(), ann("E-1"))
	if err != nil || done.Lines != 36 || done.Left != 0 || done.Files < 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	l.Record(by("telegram:9", `{"text":"after"}`), &tools.Result{}, nil)
	closeLog(t, l)
	text := all(t, path)
	for _, gone := range []string{"telegram:42\"", "@ann ", `A\"nn`, "/42/", "telegram:42 "} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is still there", gone)
		}
	}
	if n := strings.Count(text, "telegram:421") + strings.Count(text, "@anna"); n != 24 {
		t.Errorf("another person was changed: %d", n)
	}
	if !strings.Contains(text, `"args":{"n":1.50,"x":"<&>"}`) || !strings.Contains(text, `"args":{"text":"mail erased:7f3a number 3"}`) {
		t.Error("arguments were changed, or not")
	}
	r := report(t, path, m)
	if len(r.Problems) > 0 || len(r.Erased) != 1 || r.Erased[0].Lines != 36 || r.Erased[0].Receipt != "E-1" || r.Erased[0].At == "" {
		t.Errorf("%+v", r)
	}
	if r.Lines <= before.Lines || strings.Count(text, `"kind":"erased"`) != done.Files {
		t.Errorf("%d lines before, %d after", before.Lines, r.Lines)
	}
	if again, err := audit.Pseudonymise(t.Context(), audit.Options{Path: path, Anchor: m}, ann("E-2")); err != nil || again.Lines != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestPseudonymiseTwice: lines about two people who are both removed remain verifiable, also with their content.
func TestPseudonymiseTwice(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l := people(t, path, m)
	other := audit.Person{IDs: []string{"telegram:9"}, Pseudonym: "erased:11", Receipt: "E-2", Content: true}
	for _, p := range []audit.Person{ann("E-1"), other} {
		if _, err := l.Pseudonymise(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	r := report(t, path, m)
	if len(r.Problems) > 0 || len(r.Erased) != 2 || r.Erased[0].Lines != 36 || r.Erased[1].Lines != 24 {
		t.Errorf("%+v", r)
	}
	if text := all(t, path); strings.Contains(text, "hello") || !strings.Contains(text, `"args":"[erased]"`) || !strings.Contains(text, "mail") {
		t.Error("the content of the person's own calls is there, or that of others is not")
	}
}

// TestAttackErasure: whoever rewrites lines cannot use the form of pseudonymised ones as an excuse.
func TestAttackErasure(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(t *testing.T, path string){
		"edit a pseudonymised line": func(t *testing.T, path string) { edit(t, path, "number 3", "number 4", false) },
		"edit and seal it":          func(t *testing.T, path string) { edit(t, path, "number 3", "number 4", true) },
		"edit another line":         func(t *testing.T, path string) { edit(t, path, `"n":1.50`, `"n":9.99`, false) },
		"claim an erasure": func(t *testing.T, path string) {
			edit(t, path, `"n":1.50`, `"n":9.99`, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
			l := people(t, path, m)
			if _, err := l.Pseudonymise(t.Context(), ann("E-1")); err != nil {
				t.Fatal(err)
			}
			closeLog(t, l)
			attack(t, path)
			if r := report(t, path, m); len(r.Problems) == 0 || r.Problems[0].Kind != audit.Changed || r.Problems[0].Line == 0 {
				t.Errorf("not found: %+v", r.Problems)
			}
		})
	}
}

// edit changes the first line that contains a text, and may seal it so that it looks like one that was pseudonymised.
func edit(t *testing.T, path, from, to string, seal bool) {
	t.Helper()
	names, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		list := slices.Collect(strings.Lines(read(t, name)))
		at := slices.IndexFunc(list, func(line string) bool { return strings.Contains(line, from) })
		if at < 0 {
			continue
		}
		line := strings.Replace(list[at], from, to, 1)
		if seal {
			body, hash := line[:len(line)-len(`,"hash":"`)-64-len("\"}\n")], line[len(line)-67:len(line)-3]
			if !strings.Contains(body, `"erased":[`) {
				body = strings.Replace(body, `"writer":`, fmt.Sprintf(`"erased":[{"receipt":"E-1","part":1,"from":"%s"}],"writer":`, hash), 1)
			}
			line = body + `,"hash":"` + audit.Digest(body+"}") + "\"}\n"
		}
		list[at] = line
		if err := os.WriteFile(name, []byte(strings.Join(list, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no line contains %q", from)
}

// snapshots copies the directory of a log each time its mark is stored.
type snapshots struct {
	memory
	t    *testing.T
	dir  string
	list []string
}

func (s *snapshots) Save(mark audit.Mark) error {
	s.list = append(s.list, copyDir(s.t, s.dir))
	return s.memory.Save(mark)
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "x"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "x")
}

// TestPseudonymiseKilled: a process that dies at any point leaves a log that is valid, and that the next start
// completes, or leaves as it was if nothing was decided yet.
func TestPseudonymiseKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	m := &snapshots{t: t, dir: dir}
	l := people(t, path, &m.memory)
	closeLog(t, l)
	l, err := audit.New(audit.Options{Path: path, ID: "w", Now: newClock().Now, Log: zerolog.Nop(), Anchor: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Pseudonymise(t.Context(), ann("E-1")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(m.list, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "audit.jsonl.erase"))
		return err == nil
	})
	if at < 0 {
		t.Fatal("no snapshot has the plan")
	}
	for name, tc := range map[string]struct {
		change func(dir string) error
		erased bool
	}{
		"accounted, nothing replaced": {func(string) error { return nil }, true},
		"nothing accounted": {func(dir string) error {
			live := filepath.Join(dir, "audit.jsonl")
			text, _, _ := strings.Cut(read(t, live), `"kind":"erased"`)
			return os.Truncate(live, int64(strings.LastIndex(text, "\n")+1))
		}, true},
		"half accounted": {func(dir string) error {
			live := filepath.Join(dir, "audit.jsonl")
			return os.Truncate(live, int64(strings.LastIndex(read(t, live), `"kind":"erased"`)))
		}, true},
		"one replaced": {func(dir string) error {
			files, err := audit.Files(filepath.Join(dir, "audit.jsonl"))
			if err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "audit.jsonl.1.erasing"), files[0])
		}, true},
		"before the plan": {func(dir string) error {
			live := filepath.Join(dir, "audit.jsonl")
			text, _, _ := strings.Cut(read(t, live), `"kind":"erased"`)
			return errors.Join(os.Remove(live+".erase"), os.Truncate(live, int64(strings.LastIndex(text, "\n")+1)))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyDir(t, m.list[at])
			if err := tc.change(dir); err != nil {
				t.Fatal(err)
			}
			path, m := filepath.Join(dir, "audit.jsonl"), &memory{}
			l := anchored(t, path, m)
			l.Record(by("telegram:9", `{}`), &tools.Result{}, nil)
			closeLog(t, l)
			r := report(t, path, m)
			if len(r.Problems) > 0 || (len(r.Erased) == 1) != tc.erased || tc.erased && (r.Erased[0].Lines != 36 || r.Erased[0].Gone != 0) {
				t.Errorf("%+v", r)
			}
			if named := strings.Contains(all(t, path), `"telegram:42"`); named == tc.erased {
				t.Errorf("the person is named: %v", named)
			}
			if left, _ := filepath.Glob(path + "*.eras*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestPseudonymiseHeld: another process's log is refused, and a changed line does not become valid.
func TestPseudonymiseHeld(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l := people(t, path, m)
	if _, err := audit.Pseudonymise(t.Context(), audit.Options{Path: path, Anchor: m}, ann("E-1")); !errors.Is(err, audit.ErrHeld) {
		t.Errorf("another writer: %v", err)
	}
	for _, p := range []audit.Person{{}, {IDs: []string{"x"}, Pseudonym: "not x", Receipt: "E"}, {IDs: []string{"x"}, Pseudonym: "y"}} {
		if _, err := l.Pseudonymise(t.Context(), p); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	closeLog(t, l)
	edit(t, path, "number 0", "number 9", false)
	done, err := audit.Pseudonymise(t.Context(), audit.Options{Path: path, Anchor: m}, ann("E-1"))
	if err != nil || done.Left != 1 || done.Lines != 35 {
		t.Errorf("%+v, %v", done, err)
	}
	if r := report(t, path, m); len(r.Problems) != 1 || r.Problems[0].Kind != audit.Changed {
		t.Errorf("%+v", r)
	}
}

// TestPseudonymiseUnmarked: a log that is changed without its database is continued by the next start, whose mark is
// older.
func TestPseudonymiseUnmarked(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	closeLog(t, people(t, path, m))
	if done, err := audit.Pseudonymise(t.Context(), audit.Options{Path: path}, ann("E-1")); err != nil || done.Lines != 36 {
		t.Fatalf("%+v, %v", done, err)
	}
	if r := report(t, path, m); len(r.Problems) > 0 {
		t.Errorf("before the start: %+v", r)
	}
	l := anchored(t, path, m)
	record(l, 3)
	closeLog(t, l)
	if r := report(t, path, m); len(r.Problems) > 0 || int64(r.Lines) != m.mark.Lines {
		t.Errorf("after the start: %+v, mark %+v", r, m.mark)
	}
}

// TestPseudonymiseAgain: an order that is carried out again, because more lines were written, leaves a valid log.
func TestPseudonymiseAgain(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l := people(t, path, m)
	for i, want := range []int{36, 2, 0, 2} {
		done, err := l.Pseudonymise(t.Context(), ann("E-1"))
		if err != nil || done.Lines != want {
			t.Errorf("%d: %+v, %v", i, done, err)
		}
		if i != 1 {
			l.Record(by("telegram:42", `{}`), &tools.Result{}, nil)
			l.Record(by("telegram:42", `{}`), &tools.Result{}, nil)
		}
	}
	if r := report(t, path, m); len(r.Problems) > 0 || len(r.Erased) != 1 || r.Erased[0].Lines != 40 {
		t.Errorf("%+v", r)
	}
}
