//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// patience is the net under tests that wait for an event; none of them measures time.
const patience = 2 * time.Minute

// scene is a manager with a kind server "good" and an unkind one "bad".
type scene struct {
	*bench
	pids string
}

// over is the transport to the misbehaving server.
type over string

const (
	byProcess over = "stdio"
	byHTTP    over = "http"
)

// stage starts both servers. When the test is over no process of the unkind one may be left.
func stage(t *testing.T, way over, bad mcptest.Options, set func(*mcp.Options, *mcp.Server)) scene {
	t.Helper()
	var cfg mcp.Server
	if way == byHTTP {
		cfg = web(t, "bad", bad.Handler())
	} else {
		bad.Pids = t.TempDir()
		t.Cleanup(func() { nobodyLeft(t, bad.Pids) }) // runs when the manager has stopped
		cfg = process("bad", bad)
	}
	o := mcp.Options{ConnectAttempts: 1}
	if set != nil {
		set(&o, &cfg)
	}
	good, _ := inProcess(t, "good", testServer)
	o.Servers = []mcp.Server{good, cfg}
	return scene{bench: start(t, o), pids: bad.Pids}
}

// process returns a server that is the test binary once more.
func process(id string, o mcptest.Options) mcp.Server {
	// it notes its number where the test looks
	return mcp.Server{ID: id, Command: commandName, Env: o.Env(), Timeout: time.Minute, Confine: "off"}
}

// nobodyLeft checks that every process that left its number is gone, and its group with it.
func nobodyLeft(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Error("no process has left its number")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own context is over in a cleanup
	defer cancel()
	for _, f := range list {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !buried(ctx, pid) {
			t.Errorf("process %d is left", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// buried waits until a killed process is reaped by its new parent; a zombie counts as gone.
func buried(ctx context.Context, pid int) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for alive(pid) {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			if _, rest, ok := strings.Cut(string(raw), ") "); ok && strings.HasPrefix(rest, "Z") {
				return true
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// of returns the status of one server.
func (s scene) of(t *testing.T, id string) mcp.Status {
	t.Helper()
	for _, st := range s.Statuses() {
		if st.ID == id {
			return st
		}
	}
	t.Fatalf("there is no server %s", id)
	return mcp.Status{}
}

// fine checks that the kind server is none the worse.
func (s scene) fine(t *testing.T) {
	t.Helper()
	s.want(t, "good:echo", `{"text":"still here"}`, "still here")
	if st := s.of(t, "good"); st.State != mcp.Connected {
		t.Errorf("the kind server is %s: %s", st.State, st.Problem)
	}
}

// trouble waits until the unkind server is in trouble with these words, be it before or after it was connected.
func (s scene) trouble(t *testing.T, words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case n := <-s.notices:
			if n.Kind == mcp.Away && n.Server == "bad" && strings.Contains(n.Text, words) {
				return
			}
		case <-tick.C:
			if st := s.of(t, "bad"); st.State == mcp.Broken && strings.Contains(st.Problem, words) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no trouble %q; status %+v\n%s", words, s.of(t, "bad"), s.log)
		}
	}
}

// frozen returns a clock that never moves, so that rate limits do not depend on the speed of the machine.
func frozen() func() time.Time {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	return func() time.Time { return at }
}

// brief makes a server that never answers fail soon.
func brief(_ *mcp.Options, s *mcp.Server) {
	s.Timeout, s.StartupTimeout = 300*time.Millisecond, 300*time.Millisecond
}

// short makes a call that the unkind server never answers fail soon. Connecting, and the kind server, have all the time
// they want: a busy machine may need more for them.
func short(_ *mcp.Options, s *mcp.Server) {
	s.Timeout, s.StartupTimeout = 300*time.Millisecond, time.Minute
}

// TestNeverConnects has servers that cannot be connected: the manager says why, and the other server works.
func TestNeverConnects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		way  over
		o    mcptest.Options
		set  func(*mcp.Options, *mcp.Server)
		code guard.Code
		want string
	}{
		"hangs at initialize":           {byProcess, mcptest.Options{Behaviour: mcptest.HangInitialize}, brief, guard.Transient, "did not answer within 300ms"},
		"hangs at initialize over http": {byHTTP, mcptest.Options{Behaviour: mcptest.HangInitialize}, brief, guard.Transient, "did not answer within 300ms"},
		"hangs at the list": {byProcess, mcptest.Options{Behaviour: mcptest.HangList}, func(o *mcp.Options, s *mcp.Server) {
			o.ListTimeout, s.Timeout, s.StartupTimeout = 300*time.Millisecond, 300*time.Millisecond, time.Minute
		}, guard.Transient, "did not answer within"},
		"hangs at the list over http": {byHTTP, mcptest.Options{Behaviour: mcptest.HangList}, func(o *mcp.Options, s *mcp.Server) {
			o.ListTimeout, s.Timeout, s.StartupTimeout = 300*time.Millisecond, 300*time.Millisecond, time.Minute
		}, guard.Transient, "did not answer within"},
		"exits at once":             {byProcess, mcptest.Options{Behaviour: mcptest.ExitAtOnce}, nil, guard.Transient, "its program ended (exit status 3); it said: fatal: there is no licence for this server"},
		"wrong version":             {byProcess, mcptest.Options{Behaviour: mcptest.WrongVersion}, nil, guard.Transient, "1999-12-31"},
		"schema too long":           {byProcess, mcptest.Options{Behaviour: mcptest.BigSchema, Size: 10 << 20}, nil, guard.InvalidInput, "longer than 8388608 bytes"},
		"schema too long over http": {byHTTP, mcptest.Options{Behaviour: mcptest.BigSchema, Size: 10 << 20}, nil, guard.InvalidInput, "longer than 8388608 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage(t, tc.way, tc.o, tc.set)
			s.ready(t)
			st := s.of(t, "bad")
			if st.State != mcp.Broken || !strings.Contains(st.Problem, tc.want) {
				t.Errorf("got %s: %s", st.State, st.Problem)
			}
			if len(st.Tools) != 0 || st.Connections != 0 {
				t.Errorf("it offers %v over %d connections", st.Tools, st.Connections)
			}
			if !strings.Contains(s.log.String(), `"mcp_error_code":"`+string(tc.code)+`"`) {
				t.Errorf("no code %s in the log:\n%s", tc.code, s.log)
			}
			_, _, err := s.call(t, "bad:echo", `{"text":"x"}`)
			if err == nil || !strings.Contains(err.Error(), "there is no tool bad:echo") {
				t.Errorf("got %v", err)
			}
			s.fine(t)
		})
	}
}

// TestCallGoesWrong has servers that connect and then fail a call: the error has a code and says what happened, and the
// other server works.
func TestCallGoesWrong(t *testing.T) {
	t.Parallel()
	still := func(o *mcp.Options, _ *mcp.Server) { o.MaxMessage, o.Now = 1<<20, frozen() }
	small := func(o *mcp.Options, _ *mcp.Server) { o.MaxMessage = 1 << 20 }
	for name, tc := range map[string]struct {
		way  over
		o    mcptest.Options
		set  func(*mcp.Options, *mcp.Server)
		code guard.Code
		want string
	}{
		"hangs":                   {byProcess, mcptest.Options{Behaviour: mcptest.HangCall}, short, guard.Transient, "the server bad did not answer within 300ms"},
		"hangs over http":         {byHTTP, mcptest.Options{Behaviour: mcptest.HangCall}, short, guard.Transient, "the server bad did not answer within 300ms"},
		"deaf":                    {byProcess, mcptest.Options{Behaviour: mcptest.Deaf}, short, guard.Transient, "the server bad did not answer within 300ms"},
		"dies":                    {byProcess, mcptest.Options{Behaviour: mcptest.DieInCall}, nil, guard.Transient, "went away during the call: its program ended (signal: killed); it said: fatal: out of luck"},
		"dies over http":          {byHTTP, mcptest.Options{Behaviour: mcptest.DieInCall}, nil, guard.Transient, "server bad"},
		"invalid json":            {byProcess, mcptest.Options{Behaviour: mcptest.InvalidJSON}, short, guard.Transient, "the server bad did not answer within 300ms"},
		"invalid json over http":  {byHTTP, mcptest.Options{Behaviour: mcptest.InvalidJSON}, short, guard.Transient, "server bad"},
		"giant":                   {byProcess, mcptest.Options{Behaviour: mcptest.Giant}, small, guard.InvalidInput, "longer than 1048576 bytes, which is more than can be taken; ask for less"},
		"giant over http":         {byHTTP, mcptest.Options{Behaviour: mcptest.Giant}, small, guard.InvalidInput, "longer than 1048576 bytes, which is more than can be taken; ask for less"},
		"giant event over http":   {byHTTP, mcptest.Options{Behaviour: mcptest.GiantEvent}, small, guard.InvalidInput, "longer than 1048576 bytes, which is more than can be taken; ask for less"},
		"giant stream over http":  {byHTTP, mcptest.Options{Behaviour: mcptest.GiantStream}, still, guard.ServerError, "it floods us with messages"},
		"flood of logs over http": {byHTTP, mcptest.Options{Behaviour: mcptest.FloodLog}, still, guard.ServerError, "it floods us with messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage(t, tc.way, tc.o, tc.set)
			s.ready(t)
			if st := s.of(t, "bad"); st.State != mcp.Connected {
				t.Fatalf("it is %s: %s", st.State, st.Problem)
			}
			_, trail, err := s.call(t, "bad:echo", `{"text":"x"}`)
			c, te := code(t, err)
			if tc.code != "" && c != tc.code || !strings.Contains(te.Message, tc.want) {
				t.Errorf("got %s: %s\n%s", c, te.Message, s.log)
			}
			if te.Category == tools.PolicyBlocked || te.Category == tools.InvalidParameters || te.Denied() {
				t.Errorf("a call that has reached the server is told as one that could not run: %+v", te)
			}
			if want := `"mcp_error_code":"` + string(c) + `"`; err != nil && !strings.Contains(s.log.String(), want) {
				t.Errorf("no %s in the log:\n%s", want, s.log)
			}
			if trail.MCPServer != "bad" || trail.MCPErrorCode != string(c) {
				t.Errorf("trail %+v", trail)
			}
			if te.Retryable != c.Retryable() {
				t.Errorf("%s: retryable %t", c, te.Retryable)
			}
			s.fine(t)
		})
	}
}

// TestFlood has servers that send notifications without an end: the connection is given up, and nothing else suffers.
func TestFlood(t *testing.T) {
	t.Parallel()
	kinds := []mcptest.Behaviour{mcptest.Flood}
	if full() {
		kinds = append(kinds, mcptest.FloodLog)
	}
	for _, b := range kinds {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			s := stage(t, byProcess, mcptest.Options{Behaviour: b}, func(o *mcp.Options, _ *mcp.Server) { o.Now = frozen() })
			s.ready(t)
			s.trouble(t, "it floods us with messages")
			s.fine(t)
			if log := s.log.String(); len(log) > 1<<20 {
				t.Errorf("the log has %d bytes", len(log))
			}
		})
	}
}

// TestBearable has servers that misbehave in ways that can be lived with: they are connected and their calls work.
func TestBearable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		way over
		o   mcptest.Options
		set func(*mcp.Options, *mcp.Server)
		see func(t *testing.T, s scene, st mcp.Status)
	}{
		"junk on stdout": {byProcess, mcptest.Options{Behaviour: mcptest.Junk}, nil, func(t *testing.T, s scene, _ mcp.Status) {
			if n := strings.Count(s.log.String(), "text other than messages"); n == 0 || n > 10 {
				t.Errorf("the log says it %d times", n)
			}
		}},
		"noise on stderr": {byProcess, mcptest.Options{Behaviour: mcptest.StderrFlood, Size: 2 << 20}, nil, func(t *testing.T, s scene, _ mcp.Status) {
			if log := s.log.String(); len(log) > 1<<20 || !strings.Contains(log, "mcp server says") {
				t.Errorf("the log has %d bytes", len(log))
			}
		}},
		"grandchild": {byProcess, mcptest.Options{Behaviour: mcptest.Grandchild}, nil, func(t *testing.T, s scene, _ mcp.Status) {
			if list, err := os.ReadDir(s.pids); err != nil || len(list) != 2 {
				t.Errorf("%d processes, %v", len(list), err)
			}
		}},
		"two tools of one name": {byProcess, mcptest.Options{Behaviour: mcptest.Duplicates}, nil, func(t *testing.T, s scene, st mcp.Status) {
			found(t, st, "echo", guard.RuleDuplicate)
			if tool, _ := s.registry.Lookup("bad:echo"); tool.Definition.Description != "Says the text." {
				t.Errorf("it is the other one: %q", tool.Definition.Description)
			}
		}},
		"10000 tools": {byProcess, mcptest.Options{Behaviour: mcptest.Many}, nil, func(t *testing.T, _ scene, st mcp.Status) {
			if len(st.Tools) != guard.MaxTools {
				t.Errorf("%d tools", len(st.Tools))
			}
		}},
		"big schema": {byProcess, mcptest.Options{Behaviour: mcptest.BigSchema, Size: 1 << 20}, nil, func(t *testing.T, s scene, st mcp.Status) {
			found(t, st, "big", guard.RuleSchema)
			if tool, ok := s.registry.Lookup("bad:big"); !ok || string(tool.Definition.Schema) != `{"type":"object"}` {
				t.Errorf("the schema has %d bytes", len(tool.Definition.Schema))
			}
		}},
		"injection": {byProcess, mcptest.Options{Behaviour: mcptest.Inject}, nil, func(t *testing.T, s scene, st mcp.Status) {
			if got := guard.Flagged(st.Findings); len(got) != 1 || got[0] != "poison" {
				t.Errorf("flagged %v", got)
			}
			tool, _ := s.registry.Lookup("bad:poison")
			all := tool.Definition.Description + string(tool.Definition.Schema) + s.Instructions(nil)
			for _, words := range []string{"Ignore all instructions", "</system>", "You are now"} {
				if strings.Contains(all, words) {
					t.Errorf("%q comes through:\n%s", words, all)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage(t, tc.way, tc.o, tc.set)
			s.ready(t)
			s.want(t, "bad:echo", `{"text":"and it works"}`, "and it works")
			st := s.of(t, "bad")
			if st.State != mcp.Connected {
				t.Errorf("it is %s: %s", st.State, st.Problem)
			}
			if tc.see != nil {
				tc.see(t, s, st)
			}
			s.fine(t)
		})
	}
}

// full reports whether there is time for what takes minutes on a slow machine.
func full() bool { return os.Getenv("ZEPH_MCP") == "full" }

// bulk returns how much a server sends where all of it is read.
func bulk() int64 {
	if full() {
		return mcptest.GiB
	}
	return 4 << 20
}

// found checks that something was noticed about a tool.
func found(t *testing.T, st mcp.Status, tool, rule string) {
	t.Helper()
	for _, f := range st.Findings {
		if f.Tool == tool && f.Rule == rule {
			return
		}
	}
	t.Errorf("nobody noticed %s of %s: %+v", rule, tool, st.Findings)
}

// TestSlowStart has a server that starts late: nobody waits for it, and it is there when it is there.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	s := stage(t, byProcess, mcptest.Options{Behaviour: mcptest.SlowStart, Gate: gate}, func(o *mcp.Options, c *mcp.Server) {
		o.ListTimeout, c.StartupTimeout = patience, patience
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	await(ctx, t, "the kind server", func() bool { return s.of(t, "good").State == mcp.Connected })
	s.fine(t)
	if st := s.of(t, "bad"); st.State != mcp.Connecting || len(st.Tools) != 0 {
		t.Errorf("it is %s", st.State)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.ready(t)
	s.want(t, "bad:echo", `{"text":"late"}`, "late")
}

// await waits for a state that nobody announces.
func await(ctx context.Context, t *testing.T, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}

// TestMemoryStaysBounded has servers that send a gigabyte. It does not run in parallel, because it measures memory.
func TestMemoryStaysBounded(t *testing.T) { //nolint:paralleltest // see above
	const (
		limit = 1 << 20  // of a message
		bound = 96 << 20 // of what the heap may ever grow by: the garbage of some messages, and never of all
		kept  = 16 << 20 // of what may stay
	)
	for name, tc := range map[string]struct {
		way over
		o   mcptest.Options
		ok  bool
	}{
		"one message":   {byProcess, mcptest.Options{Behaviour: mcptest.Giant}, false},
		"one document":  {byHTTP, mcptest.Options{Behaviour: mcptest.Giant}, false},
		"one event":     {byHTTP, mcptest.Options{Behaviour: mcptest.GiantEvent}, false},
		"many events":   {byHTTP, mcptest.Options{Behaviour: mcptest.GiantStream}, false},
		"many messages": {byProcess, mcptest.Options{Behaviour: mcptest.GiantStream, Size: bulk()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, tc.way, tc.o, func(o *mcp.Options, _ *mcp.Server) { o.MaxMessage, o.Now = limit, frozen() })
			s.ready(t)
			before := heap()
			res, _, err := s.call(t, "bad:echo", `{"text":"x"}`)
			if tc.ok != (err == nil) || tc.ok && res.Text != "x" {
				t.Errorf("got %+v, %v", res, err)
			}
			after := heap()
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > bound {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
			if more := int64(after.HeapAlloc) - int64(before.HeapAlloc); more > kept {
				t.Errorf("%d MiB are kept", more>>20)
			}
			s.fine(t)
		})
	}
}

func heap() runtime.MemStats {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// TestStrictSignIn has a server that wants a sign-in and answers the older handshake, which the library tries next,
// with a different refusal. The result is that it wants a sign-in.
func TestStrictSignIn(t *testing.T) {
	t.Parallel()
	b := start(t, mcp.Options{})
	_, err := b.Add(t.Context(), web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})))
	if c, te := code(t, err); c != guard.AuthFailure || !strings.Contains(te.Message, "wants a sign-in") {
		t.Errorf("got %s: %s", c, te.Message)
	}
}
