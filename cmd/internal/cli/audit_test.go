package cli_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// recorded writes an audit log with calls of two people, and returns its path.
func (w *world) recorded(t *testing.T) string {
	t.Helper()
	path := filepath.Join(w.dir, "audit.jsonl")
	at := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	l, err := audit.New(audit.Options{Path: path, ID: "w", Log: zerolog.Nop(), Now: func() time.Time {
		at = at.Add(time.Minute)
		return at
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, args, caller, rule string
		err                      error
	}{
		{"bash", `{"command":"make\nall"}`, "telegram:42", "built-in: bash asks", nil},
		{"bash", `{"command":"sudo id"}`, "telegram:43", "built-in: blocklist", &tools.Error{Category: tools.PolicyBlocked, Message: "=cmd()", Reason: reason.Plain("=cmd()")}},
		{"read", `{"path":"a.txt"}`, "telegram:42/helper", "@SUM(1)", nil},
		{"github:issues", `{"q":"\u202eevil \u001b[31m"}`, "telegram:421", "", nil},
	} {
		call := toolstest.Call(c.tool, c.args)
		call.Origin.Caller, call.Origin.Turn, call.Origin.Session = c.caller, "t-"+c.caller, "s"
		call.Trail = &tools.Trail{Rule: c.rule, Effect: "allow"}
		l.Record(call, &tools.Result{}, c.err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAuditTail: the table says who did what when, filters choose lines, and what is broken or hostile does no harm.
func TestAuditTail(t *testing.T) {
	t.Parallel()
	w := here(t)
	path := w.recorded(t)
	for _, tc := range []struct {
		args []string
		want int // calls
	}{
		{nil, 4},
		{[]string{"-n", "2"}, 2},
		{[]string{"--caller", "telegram:42"}, 2},
		{[]string{"--tool", "bash"}, 2},
		{[]string{"--tool", "github:*"}, 1},
		{[]string{"--result", "blocked,timeout"}, 1},
		{[]string{"--turn", "t-telegram:43"}, 1},
		{[]string{"--session", "s"}, 4},
		{[]string{"--session", "x"}, 0},
		{[]string{"--grep", "sudo|a\\.txt"}, 2},
		{[]string{"--since", "2026-03-04T10:02:00Z", "--until", "2026-03-04T10:04:00Z"}, 2},
		{[]string{"--since", "7d"}, 0},
	} {
		args := append([]string{"audit", "tail", path}, tc.args...)
		if code := w.run(t, append(args, "--json")...); code != cli.Fine || strings.Count(w.out.String(), "\n") != tc.want {
			t.Errorf("%v: exit %d, %s%s, want %d lines", tc.args, code, w.out.String(), w.err.String(), tc.want)
		}
		want := tc.want
		if want > 0 {
			want++ // the names of the columns
		}
		if code := w.run(t, args...); code != cli.Fine || strings.Count(w.out.String(), "\n") != want || strings.ContainsAny(w.out.String(), "\x1b\u202e") {
			t.Errorf("%v: exit %d, %s%s, want %d lines", tc.args, code, w.out.String(), w.err.String(), want)
		}
	}
	w.run(t, "audit", "tail", path)
	if out := w.out.String(); !strings.Contains(out, "make⏎all") || !strings.Contains(out, "built-in: blocklist") {
		t.Error(out)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(contents(t, path), "sudo id", "sudo su", 1)+"\x1b[2Jgarbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(t, "audit", "tail", path)
	if out := w.out.String(); strings.Count(out, "\n") != 6 || !strings.Contains(out, ":2: changed") || !strings.Contains(out, ":5: no audit line") || strings.Contains(out, "\x1b") {
		t.Error(out)
	}
	for _, args := range [][]string{
		{"--since", "yesterdy"}, {"--until", "x"}, {"--result", "x"}, {"--grep", "("}, {"--tool", "["}, {"-n", "0"}, {"--since", "1d", "--until", "2d"},
	} {
		if code := w.run(t, append([]string{"audit", "tail", path}, args...)...); code != cli.Usage {
			t.Errorf("%v: exit %d: %s", args, code, w.err.String())
		}
	}
}

// TestAuditVerify: the first bad line is named with its time and what is wrong with it.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	w := here(t)
	path := w.recorded(t)
	if code := w.run(t, "audit", "verify", path, "--json"); code != cli.Fine || !strings.Contains(w.out.String(), `"ok":true`) {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	if err := os.WriteFile(path, []byte(strings.Replace(contents(t, path), "sudo id", "sudo su", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.run(t, "audit", "verify", path); code != cli.Failed || !strings.Contains(w.err.String(), "the first bad line is "+path+":2 (2026-03-04") ||
		!strings.Contains(w.out.String(), "changed: it was changed") {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	var v struct {
		OK    bool
		First struct {
			Line int
			Kind string
		}
	}
	if code := w.run(t, "audit", "verify", path, "--json"); code != cli.Failed || json.Unmarshal(w.out.Bytes(), &v) != nil || v.OK || v.First.Line != 2 || v.First.Kind != "changed" {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
}

// TestAuditExport: everything, in a form that no spreadsheet obeys; a broken chain is said and exported.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	w := here(t)
	path := w.recorded(t)
	if code := w.run(t, "audit", "export", path); code != cli.Fine || w.out.String() != contents(t, path) {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	if code := w.run(t, "audit", "export", path, "--format", "csv", "-o", "out.csv", "--until", "2026-03-04T10:04:00Z"); code != cli.Fine {
		t.Fatalf("exit %d: %s", code, w.err.String())
	}
	rows, err := csv.NewReader(strings.NewReader(contents(t, filepath.Join(w.dir, "out.csv")))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		for i, text := range row {
			if strings.HasPrefix(text, "=") || strings.HasPrefix(text, "@") {
				t.Errorf("%s: %q is a formula", rows[0][i], text)
			}
		}
	}
	if code := w.run(t, "audit", "export", path, "-o", "out.csv"); code != cli.Usage || !strings.Contains(w.err.String(), "--force") {
		t.Errorf("an existing file: exit %d: %s", code, w.err.String())
	}
	if code := w.run(t, "audit", "export", path, "--format", "cvs"); code != cli.Usage || !strings.Contains(w.err.String(), "did you mean csv?") {
		t.Errorf("an unknown format: exit %d: %s", code, w.err.String())
	}
	if err := os.WriteFile(path, []byte(strings.Replace(contents(t, path), "sudo id", "sudo su", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.run(t, "audit", "export", path); code != cli.Failed || strings.Count(w.out.String(), "\n") != 3 || !strings.Contains(w.err.String(), ":2 (") ||
		!strings.Contains(w.err.String(), "1 broken lines were left out") {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
}

// shown is an output that several goroutines use.
type shown struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// until waits until the output contains a text.
func (s *shown) until(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		s.mu.Lock()
		found := strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-s.more:
		case <-timeout:
			t.Fatalf("%q was not printed", text)
		}
	}
}

// TestAuditFollow: lines of logs that exist and of those that begin later are printed, and Ctrl-C ends it with 0.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	w := &world{dir: t.TempDir(), env: []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline"}}
	out := &shown{more: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var running sync.WaitGroup
	running.Go(func() {
		ended <- cli.Main(ctx, []string{"audit", "tail", "-f"}, cli.Env{
			In: strings.NewReader(""), Out: out, Err: &locked{w: &w.err}, Environ: w.env, WorkDir: w.dir, Home: w.dir, Executable: os.Args[0],
		})
	})
	defer running.Wait()
	defer stop()
	for _, path := range []string{".", "x/../y"} {
		other := &world{dir: w.dir, env: w.env}
		other.run(t, "tools", "call", "list_directory", `{"path":"`+path+`"}`)
		out.until(t, "  "+path+" ")
	}
	stop()
	if code := <-ended; code != cli.Fine {
		t.Errorf("exit %d: %s", code, w.err.String())
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
