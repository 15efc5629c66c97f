//go:build unix

package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// pid asks a server for its process and directory.
func (b *bench) pid(t *testing.T) (int, string) {
	t.Helper()
	res, _, err := b.call(t, "srv:where", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	id, dir, _ := strings.Cut(res.Text, " ")
	n, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	return n, dir
}

// TestDies has a server die in the middle of a call. The call ends at once with a typed error, the tools are withdrawn
// until the server is back, and the session that used it is told about both.
func TestDies(t *testing.T) {
	t.Parallel()
	cfg := stdio("srv", "plain")
	cfg.Confine = "off" // its number is ours then
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
	b.ready(t)
	old, _ := b.pid(t)
	_, trail, err := b.call(t, "srv:die", `{}`)
	c, te := code(t, err)
	if c != guard.Transient || te.Category != tools.NetworkError || !te.Retryable {
		t.Errorf("got %s, %+v", c, te)
	}
	if !strings.Contains(te.Message, "exit status 7") || !strings.Contains(te.Message, "fatal: token [redacted] is wrong") {
		t.Errorf("message %q", te.Message)
	}
	if trail.MCPServer != "srv" || trail.MCPErrorCode != "transient" {
		t.Errorf("trail %+v", trail)
	}
	away := b.notice(t, mcp.Away)
	if len(away.Sessions) != 1 || away.Sessions[0] != "telegram:42" || !strings.Contains(away.Text, "The server srv went away: its program ended") {
		t.Errorf("notice %+v\n%s", away, b.log)
	}
	back := b.notice(t, mcp.Back)
	if len(back.Sessions) != 1 || !strings.Contains(back.Text, "its 9 tools can be used again") {
		t.Errorf("notice %+v", back)
	}
	b.want(t, "srv:echo", `{"text":"again"}`, "again")
	if fresh, _ := b.pid(t); fresh == old {
		t.Error("it is the same process")
	}
	if log := b.log.String(); strings.Contains(log, "sk-secret-123") || !strings.Contains(log, "mcp server says") {
		t.Errorf("log %s", log)
	}
}

// TestNoProcessIsLeft counts processes after the end: the server, one that ignores signals, and the children of one.
func TestNoProcessIsLeft(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"plain", "stubborn", "child"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg := stdio("srv", mode)
			cfg.Confine = "off" // its numbers are ours then
			b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
			b.ready(t)
			pid, dir := b.pid(t)
			pids := []int{pid}
			if mode == "child" {
				pids = append(pids, readPid(t, filepath.Join(dir, "child.pid")))
			}
			for _, p := range pids {
				if !alive(p) {
					t.Fatalf("process %d is not there", p)
				}
			}
			b.stop()
			for _, p := range pids {
				if !gone(t, p) {
					t.Errorf("process %d is left", p)
				}
			}
		})
	}
}

// readPid waits for a file with the number of a process.
func readPid(t *testing.T, file string) int {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		raw, err := os.ReadFile(file)
		if n, bad := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && bad == nil {
			return n
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}

// gone waits until a killed orphan is reaped by its new parent; a zombie counts as gone.
func gone(t *testing.T, pid int) bool {
	t.Helper()
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
		case <-t.Context().Done():
			return false
		}
	}
	return true
}

// TestEnvironment checks what a process gets: its own variables, no inherited secret, a private directory.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	cfg := stdio("srv", "plain")
	cfg.Env["API_KEY"] = "mine"
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}, Environ: []string{"NODE_OPTIONS=--require evil", "ZEPH_TELEGRAM_TOKEN=1", "COLOUR=red"}})
	b.ready(t)
	b.want(t, "srv:env", `{"text":"API_KEY"}`, "mine")
	b.want(t, "srv:env", `{"text":"COLOUR"}`, "red")
	for _, name := range []string{"GITHUB_TOKEN", "NODE_OPTIONS", "ZEPH_TELEGRAM_TOKEN"} {
		b.want(t, "srv:env", `{"text":"`+name+`"}`, "")
	}
	_, dir := b.pid(t)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(dir) != "srv" || info.Mode().Perm() != 0o700 {
		t.Errorf("it runs in %s, %s", dir, info.Mode())
	}
}

// TestDoesNotStart has programs that never speak the protocol.
func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  mcp.Server
		want string
	}{
		"exits":       {stdio("srv", "exit"), "its program ended (exit status 3); it said: no license key: [redacted]"},
		"noise":       {stdio("srv", "noise"), "it prints something else than MCP messages on its standard output"},
		"unknown":     {mcp.Server{ID: "srv", Command: "rm"}, `command "rm" is not allowed`},
		"path":        {mcp.Server{ID: "srv", Command: "/bin/sh"}, "has a path in it"},
		"not there":   {mcp.Server{ID: "srv", Command: "uvx"}, "command uvx was not found in PATH"},
		"environment": {mcp.Server{ID: "srv", Command: commandName, Env: map[string]string{"LD_PRELOAD": "x"}}, "LD_PRELOAD is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mcp.Options{Servers: []mcp.Server{tc.cfg}, AllowedCommands: []string{"uvx"}, ConnectAttempts: 1})
			b.ready(t)
			st := b.status(t)
			if st.State != mcp.Broken || !strings.Contains(st.Problem, tc.want) {
				t.Errorf("got %s: %s", st.State, st.Problem)
			}
			final := name != "exits" && name != "noise"
			if strings.Contains(st.Problem, "not tried again") != final {
				t.Errorf("tried again? %s", st.Problem)
			}
			if b.registry.Names() != nil && len(b.registry.Names()) != 0 {
				t.Errorf("tools %v", b.registry.Names())
			}
			if strings.Contains(b.log.String()+st.Problem, "sk-secret") {
				t.Error("the log or the status contains a secret")
			}
		})
	}
}

// TestGiantResult has a server that answers with a gigabyte.
func TestGiantResult(t *testing.T) {
	t.Parallel()
	b := start(t, mcp.Options{Servers: []mcp.Server{stdio("srv", "flood")}, MaxMessage: 1 << 20})
	b.ready(t)
	_, _, err := b.call(t, "srv:big", `{}`)
	c, te := code(t, err)
	if c != guard.InvalidInput || te.Retryable || !strings.Contains(te.Message, "longer than 1048576 bytes") {
		t.Errorf("got %s, %v", c, te)
	}
	b.notice(t, mcp.Away)
	b.notice(t, mcp.Back)
}
