//go:build unix

package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// TestTaskTools: a tool that can only be called as a task is not offered, with a warning. A tool that can be called
// either way is.
func TestTaskTools(t *testing.T) {
	t.Parallel()
	for _, way := range []over{byProcess, byHTTP} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			s := stage(t, way, mcptest.Options{Behaviour: mcptest.Tasks}, nil)
			s.ready(t)
			st := s.of(t, "bad")
			if !slices.Equal(st.Tools, []string{"bad:echo", "bad:maybe"}) {
				t.Errorf("tools %v, problem %s", st.Tools, st.Problem)
			}
			if len(st.Dropped) != 1 || st.Dropped[0].Tool != "slow" || !strings.Contains(st.Dropped[0].Reason, "task") {
				t.Errorf("dropped %+v", st.Dropped)
			}
			s.want(t, "bad:maybe", `{"text":"now"}`, "now")
		})
	}
}

// TestPageNeeded: if a server refuses a call until a page was opened, the error contains its words, the address, and
// that nobody opens it.
func TestPageNeeded(t *testing.T) {
	t.Parallel()
	s := stage(t, byProcess, mcptest.Options{Behaviour: mcptest.PageNeeded}, nil)
	s.ready(t)
	_, trail, err := s.call(t, "bad:echo", `{"text":"x"}`)
	c, te := code(t, err)
	if c != guard.AuthFailure || trail.MCPErrorCode != "auth_failure" || te.Category != tools.PermanentFailure {
		t.Errorf("%s %+v", c, te)
	}
	for _, part := range []string{"Sign in first.", "Sign in to Example", "https://login.example/start?x=1"} {
		if !strings.Contains(te.Message, part) {
			t.Errorf("%q lacks %q", te.Message, part)
		}
	}
	if !strings.Contains(te.Suggestion, "do not open it") {
		t.Errorf("suggestion %q", te.Suggestion)
	}
}

// TestAwayKeepsItsName: a tool whose server is away is not an unknown tool, and the model is told which server is away.
func TestAwayKeepsItsName(t *testing.T) {
	t.Parallel()
	cfg, stop := inProcess(t, "bad", testServer)
	connect, first := cfg.Connect, true
	cfg.Connect = func(ctx context.Context) (sdk.Transport, error) {
		if !first {
			return nil, errors.New("it is broken for good")
		}
		first = false
		return connect(ctx)
	}
	good, _ := inProcess(t, "good", testServer)
	s := start(t, mcp.Options{Servers: []mcp.Server{good, cfg}, Backoff: time.Hour, ConnectAttempts: 100})
	s.ready(t)
	stop()
	s.notice(t, mcp.Away)
	_, _, err := s.call(t, "bad:echo", `{"text":"x"}`)
	if c, te := code(t, err); c != guard.Transient || te.Category != tools.NetworkError || !strings.Contains(te.Message, "the server bad is not connected") || !strings.Contains(te.Suggestion, "its server is away") {
		t.Errorf("%s %+v", c, te)
	}
	if !s.Away("bad") || s.Away("good") || s.Away("nobody") {
		t.Error("it is not clear who is away")
	}
}

// TestCallStopsWaiting: who waits for a server hears /stop.
func TestCallStopsWaiting(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	s := stage(t, byProcess, mcptest.Options{Behaviour: mcptest.SlowStart, Gate: open}, nil)
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := s.Await(ctx, "bad:echo"); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if err := s.Await(t.Context(), "nobody:echo"); err != nil {
		t.Errorf("a server that does not exist: %v", err)
	}
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
