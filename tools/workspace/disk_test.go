package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/workspace"
)

// machine is a disk and what is on it.
type machine struct {
	free, total int64
	used        int64
	walks       int
	broken      error
}

func (m *machine) options() workspace.GuardOptions {
	return workspace.GuardOptions{
		Root: "/ws", MaxBytes: 1000, Reserve: 100, Own: "/own",
		Free: func(string) (int64, int64, error) { return m.free, m.total, m.broken },
		Used: func(context.Context, string) (int64, error) {
			m.walks++
			return m.used, nil
		},
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		m     machine
		path  string
		bytes int64
		want  string
	}{
		"room":              {machine{free: 10_000, total: 100_000, used: 100}, "/ws/a/x", 800, ""},
		"quota":             {machine{free: 10_000, total: 100_000, used: 300}, "/ws/a/x", 800, "workspaces.max_bytes"},
		"full already":      {machine{free: 10_000, total: 100_000, used: 3000}, "/ws/a/x", 1, "workspaces.max_bytes"},
		"reserve":           {machine{free: 500, total: 100_000, used: 0}, "/ws/a/x", 450, "workspaces.reserve_bytes"},
		"reserve is gone":   {machine{free: 50, total: 100_000}, "/elsewhere/x", 1, "workspaces.reserve_bytes"},
		"nothing":           {machine{free: 0, total: 100_000}, "/ws/a/x", 0, ""},
		"no workspace":      {machine{free: 10_000, total: 100_000, used: 3000}, "/elsewhere/x", 2000, ""},
		"the root itself":   {machine{free: 10_000, total: 100_000, used: 3000}, "/ws", 2000, ""},
		"beside the root":   {machine{free: 10_000, total: 100_000, used: 3000}, "/ws2/a", 2000, ""},
		"a small disk":      {machine{free: 60, total: 400, used: 0}, "/ws/a/x", 5, ""},
		"a small full disk": {machine{free: 40, total: 400, used: 0}, "/ws/a/x", 5, "workspaces.reserve_bytes"},
		"unknown":           {machine{broken: errors.New("no such disk")}, "/ws/a/x", 5, "cannot be looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := workspace.NewGuard(tt.m.options()).Admit(t.Context(), tt.path, tt.bytes)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(tools.Feedback(tools.AsError(err)), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	var none *workspace.Guard
	if none.Admit(t.Context(), "/x", 1<<40) != nil {
		t.Error("no guard refuses")
	}
}

// TestWalksAreRare: a workspace is walked once, and again only if the disk lost so much space that the limit may be
// reached.
func TestWalksAreRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{free: 10_000, total: 100_000, used: 100}
		g := workspace.NewGuard(m.options())
		for range 50 {
			if err := g.Admit(t.Context(), "/ws/a/x", 10); err != nil {
				t.Fatal(err)
			}
			m.free -= 10
		}
		if m.walks != 1 {
			t.Errorf("%d walks", m.walks)
		}
		m.free -= 600 // somebody else's
		if err := g.Admit(t.Context(), "/ws/a/x", 10); err != nil || m.walks != 2 {
			t.Errorf("%v after %d walks", err, m.walks)
		}
		<-time.After(time.Hour)
		if err := g.Admit(t.Context(), "/ws/a/x", 10); err != nil || m.walks != 3 {
			t.Errorf("%v after %d walks", err, m.walks)
		}
	})
}

func TestFollow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dir   string
		start machine
		grow  func(*machine)
		want  string
	}{
		"quota":        {"/ws/a", machine{free: 1 << 40, total: 1 << 42, used: 10}, func(m *machine) { m.used += 1 << 22; m.free -= 1 << 22 }, "workspaces.max_bytes"},
		"reserve":      {"/elsewhere", machine{free: 1000, total: 1 << 30}, func(m *machine) { m.free -= 100 }, "workspaces.reserve_bytes"},
		"it may go on": {"/ws/a", machine{free: 1 << 40, total: 1 << 42, used: 10}, func(m *machine) { m.free -= 1 << 20 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := tt.start
				var mu sync.Mutex // the watch calls this from its own goroutines
				o := m.options()
				free, used := o.Free, o.Used
				o.Free = func(dir string) (int64, int64, error) {
					mu.Lock()
					defer mu.Unlock()
					return free(dir)
				}
				o.Used = func(ctx context.Context, dir string) (int64, error) {
					mu.Lock()
					defer mu.Unlock()
					return used(ctx, dir)
				}
				w, err := workspace.NewGuard(o).Watch(t.Context(), tt.dir)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- w.Follow(ctx) }()
				for range 20 {
					<-time.After(time.Second)
					mu.Lock()
					tt.grow(&m)
					mu.Unlock()
				}
				err = <-done
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		})
	}
	var none *workspace.Guard
	w, err := none.Watch(t.Context(), "/x")
	if err != nil || w.Follow(t.Context()) != nil {
		t.Error("no guard ends a command")
	}
}

// TestWatchAtTheStart: on a full disk nothing runs; in a workspace over its limit, commands that clean up still run.
func TestWatchAtTheStart(t *testing.T) {
	t.Parallel()
	m := &machine{free: 50, total: 100_000}
	if _, err := workspace.NewGuard(m.options()).Watch(t.Context(), "/ws/a"); err == nil {
		t.Error("it starts on a full disk")
	}
	m = &machine{free: 1 << 40, total: 1 << 42, used: 1 << 30}
	w, err := workspace.NewGuard(m.options()).Watch(t.Context(), "/ws/a")
	if err != nil {
		t.Fatal(err)
	}
	if next, over := w.Quota(t.Context()); over != nil || next <= 0 {
		t.Errorf("it cannot clean up: %v", over)
	}
	m.used += 2 << 20
	m.free -= 2 << 20
	if _, over := w.Quota(t.Context()); over == nil {
		t.Error("it may grow on")
	}
	m.broken = errors.New("gone")
	if _, err := workspace.NewGuard(m.options()).Watch(t.Context(), "/ws/a"); err == nil {
		t.Error("it starts on an unknown disk")
	}
	if _, over := w.Reserve(t.Context()); over != nil {
		t.Errorf("a directory that is gone ends the command: %v", over)
	}
	if _, over := w.Quota(t.Context()); over != nil {
		t.Errorf("a directory that is gone ends the command: %v", over)
	}
}

// TestRealDisk measures what is there: every file counts, also an empty one, a second name does not.
func TestRealDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	ws := filepath.Join(root, "a")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	g := workspace.NewGuard(workspace.GuardOptions{Root: root, MaxBytes: 1 << 20})
	if err := g.Admit(t.Context(), filepath.Join(ws, "x"), 500<<10); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "y"} {
		if err := os.WriteFile(filepath.Join(ws, name), make([]byte, 600<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(ws, "x"), filepath.Join(ws, "z")); err != nil {
		t.Fatal(err)
	}
	g = workspace.NewGuard(workspace.GuardOptions{Root: root, MaxBytes: 1 << 20})
	if err := g.Admit(t.Context(), filepath.Join(ws, "not", "there"), 1); err == nil {
		t.Error("a full workspace takes more")
	}
	g = workspace.NewGuard(workspace.GuardOptions{Root: root, MaxBytes: 1500 << 10, Reserve: 1})
	if err := g.Admit(t.Context(), filepath.Join(ws, "w"), 1); err != nil {
		t.Errorf("a second name counted: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	g = workspace.NewGuard(workspace.GuardOptions{Root: root, MaxBytes: 1500 << 10})
	if err := g.Admit(ended, filepath.Join(ws, "w"), 1); err == nil {
		t.Error("a walk that ended early said enough")
	}
}
