package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// clock stays at one moment until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.FixedZone("CET", 3600))}
}

// stars hides the word "hunter2".
type stars struct{}

func (stars) String(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }

func (s stars) Value(v any) any {
	switch v := v.(type) {
	case string:
		return s.String(v)
	case map[string]any:
		m := map[string]any{}
		for k, x := range v {
			m[k] = s.Value(x)
		}
		return m
	default:
		return v
	}
}

func call(n int) *tools.Call {
	c := toolstest.Call("echo", fmt.Sprintf(`{"text":"%d"}`, n))
	c.ID = fmt.Sprintf("call-%d", n)
	return c
}

func open(t *testing.T, path string) *audit.Log {
	t.Helper()
	l, err := audit.New(audit.Options{Path: path, ID: "w", Now: newClock().Now, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func closeLog(t *testing.T, l *audit.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func verify(t *testing.T, text string) audit.Report {
	t.Helper()
	r, err := audit.Verify(nil, audit.File{Reader: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines decodes what was written, without the chain's fields.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var list []map[string]any
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		delete(m, "prev_hash")
		delete(m, "hash")
		list = append(list, m)
	}
	return list
}

func TestLine(t *testing.T) {
	t.Parallel()
	two := 2
	var out bytes.Buffer
	l, err := audit.New(audit.Options{Writer: &out, Redactor: stars{}, ID: "w", Now: newClock().Now})
	if err != nil {
		t.Fatal(err)
	}
	c := toolstest.Call("github:issues", `{"token":"hunter2","n":1.50}`)
	c.Def = tools.Definition{Name: "github:issues", Server: "github"}
	c.Trail = &tools.Trail{
		Rule: "rule[0] allow", ApprovedBy: "telegram:42", Judge: "allow", Attempts: 2, Truncated: true, Injection: true,
		MCPErrorCode: "-32000", Correlation: "c1", Duration: 1500 * time.Millisecond, ExitCode: &two,
		Egress: []tools.Egress{
			{URL: "https://h/hunter2", Host: "h", Method: "GET", Status: 301, Bytes: 3, Millis: 7},
			{URL: "https://10.0.0.1/", Host: "10.0.0.1", Method: "GET", Blocked: "ssrf", Hop: 1},
		},
	}
	l.Record(c, &tools.Result{Text: "x", Error: true, ExitCode: &two}, nil)
	common := func(m map[string]any) map[string]any {
		maps.Copy(m, map[string]any{
			"timestamp": "2026-03-04T04:06:07.008Z", "session": "telegram:42", "turn": "turn-1", "call": "call-1",
			"tool": "github:issues", "caller_id": "telegram:42", "channel": "telegram", "mcp_server_id": "github", "writer": "w",
		})
		return m
	}
	want := []map[string]any{
		common(map[string]any{"kind": "egress", "url": "https://h/***", "host": "h", "method": "GET", "status": 301.0, "response_bytes": 3.0, "duration_ms": 7.0}),
		common(map[string]any{"kind": "egress", "url": "https://10.0.0.1/", "host": "10.0.0.1", "method": "GET", "block_reason": "ssrf", "hop": 1.0, "duration_ms": 0.0}),
		common(map[string]any{
			"args": map[string]any{"token": "***", "n": 1.5}, "result": map[string]any{"type": "error", "reason": "exit code 2"},
			"duration_ms": 1500.0, "exit_code": 2.0, "truncated": true, "policy_match": "rule[0] allow", "approved_by": "telegram:42", "attempts": 2.0,
			"mcp_error_code": "-32000", "adversarial_policy_decision": "allow", "injection_flagged": true, "correlation_id": "c1",
		}),
	}
	if diff := cmp.Diff(want, lines(t, out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := verify(t, out.String()); r.Lines != 3 || len(r.Problems) > 0 {
		t.Errorf("verify: %+v", r)
	}
	if !strings.Contains(out.String(), `"n":1.50`) {
		t.Error("the number is not as it was written")
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	three := 3
	for _, tc := range []struct {
		name       string
		res        *tools.Result
		err        error
		rolledBack bool
		want       map[string]any // nil = no line
		category   any
	}{
		{name: "success", res: &tools.Result{Text: "x"}, want: map[string]any{"type": "success"}},
		{name: "exit code", res: &tools.Result{Error: true, ExitCode: &three}, want: map[string]any{"type": "error", "reason": "exit code 3"}},
		{name: "killed", res: &tools.Result{Error: true}, want: map[string]any{"type": "error"}},
		{name: "rollback", res: &tools.Result{Error: true, ExitCode: &three}, rolledBack: true, want: map[string]any{"type": "rollback"}},
		{name: "policy", err: &tools.Error{Category: tools.PolicyBlocked, Message: "no", Reason: reason.Plain("no")}, want: map[string]any{"type": "blocked", "reason": "no"}, category: "policy_blocked"},
		{name: "quota", err: &tools.Error{Category: tools.RateLimited, Message: "later", Reason: reason.Plain("later")}, want: map[string]any{"type": "blocked", "reason": "later"}, category: "rate_limited"},
		{name: "bad arguments", err: tools.Errorf(tools.InvalidParameters, "missing hunter2"), want: map[string]any{"type": "error", "reason": "missing ***"}, category: "invalid_parameters"},
		{name: "timeout", err: context.DeadlineExceeded, want: map[string]any{"type": "timeout", "reason": "the call took too long"}, category: "timeout"},
		{name: "cancelled", err: context.Canceled, want: map[string]any{"type": "cancelled", "reason": "the call was cancelled"}, category: "cancelled"},
		{name: "question cancelled", err: &tools.Error{Category: tools.Cancelled, Message: "dropped", Reason: reason.Plain("dropped")}, want: map[string]any{"type": "cancelled", "reason": "dropped"}, category: "cancelled"},
		{name: "pending", err: fmt.Errorf("wrapped: %w", &tools.Pending{})},
		{name: "probed", err: tools.ErrProbed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			l, err := audit.New(audit.Options{Writer: &out, Redactor: stars{}})
			if err != nil {
				t.Fatal(err)
			}
			c := call(1)
			c.Trail.RolledBack = tc.rolledBack
			res, err := l.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) { return tc.res, tc.err })(t.Context(), c)
			if res != tc.res || !errors.Is(err, tc.err) {
				t.Errorf("the stage changed the result: %v, %v", res, err)
			}
			got := lines(t, out.String())
			if tc.want == nil {
				if len(got) != 0 {
					t.Errorf("got %v, want no line", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("got %d lines", len(got))
			}
			if diff := cmp.Diff(tc.want, got[0]["result"]); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got[0]["error_category"] != tc.category {
				t.Errorf("category %v, want %v", got[0]["error_category"], tc.category)
			}
		})
	}
}

func TestDeniedProbeLeavesNoLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l, err := audit.New(audit.Options{Writer: &out})
	if err != nil {
		t.Fatal(err)
	}
	c := call(1)
	c.Probe = true
	denied := &tools.Error{Category: tools.PolicyBlocked, Reason: reason.New(reason.PolicyDenies)}
	_, err = l.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) { return nil, denied })(t.Context(), c)
	if !errors.Is(err, denied) || out.Len() > 0 {
		t.Errorf("got %v and %q", err, out.String())
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l, err := audit.New(audit.Options{Writer: &out})
	if err != nil {
		t.Fatal(err)
	}
	c := call(7)
	c.Trail = nil
	l.Interrupted(c)
	got := lines(t, out.String())
	if len(got) != 1 || got[0]["call"] != "call-7" || !cmp.Equal(got[0]["result"], map[string]any{"type": "error", "reason": "outcome unknown (interrupted)"}) {
		t.Errorf("got %v", got)
	}
	var none *audit.Log
	none.Interrupted(c)
	none.Record(c, nil, nil)
	if none.Failures() != 0 || none.Close() != nil {
		t.Error("a nil log is not quiet")
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 3000)
	for _, tc := range []struct {
		name, args string
		want       any
	}{
		{"object", `{"a":"b"}`, map[string]any{"a": "b"}},
		{"none", ``, nil},
		{"no JSON", `{"a":hunter2`, `{"a":***`},
		{"long", `{"a":"` + long + `"}`, `{"a":"` + strings.Repeat("ä", 1994) + "… (3008 characters)"},
		{"long and no JSON", long, strings.Repeat("ä", 2000) + "… (3000 characters)"},
		{"secret at the cut", `{"a":"` + strings.Repeat("x", 1990) + `hunter2` + long + `"}`, `{"a":"` + strings.Repeat("x", 1990) + "***ä… (5001 characters)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			l, err := audit.New(audit.Options{Writer: &out, Redactor: stars{}})
			if err != nil {
				t.Fatal(err)
			}
			c := call(1)
			c.Args = json.RawMessage(tc.args)
			l.Record(c, &tools.Result{}, nil)
			if diff := cmp.Diff(tc.want, lines(t, out.String())[0]["args"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !utf8.ValidString(out.String()) {
				t.Error("a character was cut in two")
			}
		})
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, nil, 0o644); err != nil { // too open on purpose
		t.Fatal(err)
	}
	open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	if second, err := audit.New(audit.Options{Path: path}); err == nil {
		t.Errorf("a second writer got the file: %v", second.Close())
	} else if !strings.Contains(err.Error(), "another process writes this audit log") {
		t.Errorf("got %v", err)
	}
	big := filepath.Join(t.TempDir(), "movie")
	if err := os.WriteFile(big, bytes.Repeat([]byte{1}, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := audit.New(audit.Options{Path: big}); err == nil {
		t.Errorf("a file that is no log was taken: %v", l.Close())
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]audit.Options{
		"nothing":   {},
		"both":      {Path: "x", Writer: &bytes.Buffer{}},
		"directory": {Path: t.TempDir()},
	} {
		if l, err := audit.New(o); err == nil {
			t.Errorf("%s: accepted; close: %v", name, l.Close())
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	const workers, each = 8, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range each {
				l.Record(call(w*each+n), &tools.Result{}, nil)
			}
		})
	}
	wg.Wait()
	closeLog(t, l)
	if r := verify(t, read(t, path)); r.Lines != workers*each || len(r.Problems) > 0 {
		t.Errorf("got %+v", r)
	}
	l.Record(call(1), &tools.Result{}, nil)
	if l.Failures() != 1 {
		t.Errorf("a line after Close: %d failures, want 1", l.Failures())
	}
}

// faulty is a disk that is full: it takes only room bytes, then nothing until it is given more.
type faulty struct {
	bytes.Buffer
	room int
}

func (f *faulty) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	f.room -= n
	f.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

func TestFailures(t *testing.T) {
	t.Parallel()
	const plenty = 1 << 20
	for _, room := range []int{0, 1, 100, 300} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			t.Parallel()
			var logged bytes.Buffer
			out, now := &faulty{room: plenty}, newClock()
			l, err := audit.New(audit.Options{Writer: out, Now: now.Now, Log: zerolog.New(&logged)})
			if err != nil {
				t.Fatal(err)
			}
			l.Record(call(1), &tools.Result{}, nil)
			out.room = room
			res, err := l.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: "fine"}, nil })(t.Context(), call(2))
			if err != nil || res.Text != "fine" {
				t.Errorf("the call suffered: %v, %v", res, err)
			}
			now.add(59 * time.Second)
			out.room = 1 // not enough for more than the newline
			l.Record(call(3), &tools.Result{}, nil)
			if got := strings.Count(logged.String(), "audit line not written"); got != 1 {
				t.Errorf("%d complaints within a minute, want 1", got)
			}
			now.add(time.Second)
			out.room = 0
			l.Record(call(4), &tools.Result{}, nil)
			if got := strings.Count(logged.String(), "audit line not written"); got != 2 {
				t.Errorf("%d complaints after a minute, want 2", got)
			}
			out.room = plenty
			l.Record(call(5), &tools.Result{}, nil)
			l.Record(call(6), &tools.Result{}, nil)
			if l.Failures() != 3 {
				t.Errorf("%d failures, want 3", l.Failures())
			}
			r := verify(t, out.String())
			if len(r.Problems) > 0 || r.Lines != 4 || r.Lost != 3 {
				t.Errorf("got %+v\n%s", r, out.String())
			}
		})
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var logged bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l, err := audit.New(audit.Options{Path: path, Log: zerolog.New(&logged)})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			l.Record(call(n), &tools.Result{}, nil)
			<-time.After(1500 * time.Millisecond) // the flush comes in between
			synctest.Wait()
		}
		l.Record(call(3), &tools.Result{}, nil) // Close comes before this one's flush
		closeLog(t, l)
		closeLog(t, l) // closing twice is fine
		<-time.After(2 * time.Second)
	})
	if logged.Len() > 0 {
		t.Errorf("logged %s", logged.String())
	}
	if r := verify(t, read(t, path)); r.Lines != 4 || len(r.Problems) > 0 {
		t.Errorf("got %+v", r)
	}
}
