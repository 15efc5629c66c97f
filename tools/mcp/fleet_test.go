//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// fleetTools is how many tools a server of a fleet has, echo among them.
const fleetTools = 20

// fleet starts a manager with n servers and waits until each was tried; stop ends it and waits for the processes. dir
// is where PATH finds the program, and pids where the servers write their process ids.
func fleet(tb testing.TB, n int, dir, pids string) (m *mcp.Manager, registry *tools.Registry, stop func()) {
	tb.Helper()
	o := mcp.Options{
		Registry: &tools.Registry{}, AllowedCommands: []string{commandName}, Environ: []string{"PATH=" + dir}, WorkDir: tb.TempDir(),
		ListTimeout: patience, Log: zerolog.Nop(),
	}
	for i := range n {
		cfg := process(fmt.Sprintf("server_%02d", i), mcptest.Options{Behaviour: mcptest.Plain, Tools: fleetTools - 1, Pids: pids})
		cfg.Timeout = patience
		o.Servers = append(o.Servers, cfg)
	}
	m, err := mcp.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := m.Run(ctx); err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	tb.Cleanup(stop)
	wait, done := context.WithTimeout(context.Background(), 2*patience)
	defer done()
	if err := m.Ready(wait); err != nil {
		tb.Fatal(err)
	}
	return m, o.Registry, stop
}

// TestFleet has ten servers at once: all connect, all work, none is left.
func TestFleet(t *testing.T) {
	t.Parallel()
	const n = 10
	pids := t.TempDir()
	m, registry, stop := fleet(t, n, path(t), pids)
	for _, st := range m.Statuses() {
		if st.State != mcp.Connected || len(st.Tools) != fleetTools {
			t.Errorf("%s is %s with %d tools: %s", st.ID, st.State, len(st.Tools), st.Problem)
		}
	}
	if got := len(registry.Names()); got != n*fleetTools {
		t.Errorf("%d tools in the registry", got)
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("server_%02d:echo", i)
			tool, ok := registry.Lookup(name)
			if !ok {
				t.Errorf("there is no %s", name)
				return
			}
			res, err := tool.Run(t.Context(), &tools.Call{ID: "c1", Tool: name, Args: json.RawMessage(`{"text":"aye"}`), Def: tool.Definition, Trail: &tools.Trail{}})
			if err != nil || res.Text != "aye" {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		})
	}
	wg.Wait()
	stop()
	if names := registry.Names(); len(names) != 0 {
		t.Errorf("tools are left: %v", names)
	}
	if list, err := os.ReadDir(pids); err != nil || len(list) != n {
		t.Errorf("%d processes have left their numbers, %v", len(list), err)
	}
	nobodyLeft(t, pids)
}

// BenchmarkFleet50 measures what 50 servers with 20 tools each cost us: the time to connect all, and what is added to
// our own memory. The goals are 10 s on two cores and 100 MB. The servers run on the same cores.
func BenchmarkFleet50(b *testing.B) {
	const n = 50
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.Symlink(self, dir+"/"+commandName); err != nil {
		b.Skipf("no symbolic links here: %v", err)
	}
	var slowest time.Duration
	var most int64
	for b.Loop() {
		before := resident(b)
		began := time.Now()
		m, registry, stop := fleet(b, n, dir, "")
		slowest = max(slowest, time.Since(began))
		most = max(most, resident(b)-before)
		if counts := m.Counts(); counts[mcp.Connected] != n || len(registry.Names()) != n*fleetTools {
			b.Errorf("states %v, %d tools", counts, len(registry.Names()))
		}
		stop()
	}
	b.ReportMetric(slowest.Seconds(), "s-to-connect")
	b.ReportMetric(float64(most)/1e6, "MB-added")
}

// resident is our own resident memory in bytes.
func resident(tb testing.TB) int64 {
	tb.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skipf("no /proc here: %v", err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kb << 10
		}
	}
	tb.Fatal("no VmRSS in /proc/self/status")
	return 0
}
