package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools"
)

// sharing is a process with a directory of state of its own, on a volume that others see too.
func sharing(t *testing.T, dir, name string, more ...string) *Core {
	t.Helper()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: append([]string{
		"ZEPH_DATA_DIR=" + filepath.Join(dir, name), "ZEPH_WORKSPACES_DIR=" + filepath.Join(dir, "files"), "ZEPH_WORKSPACES_SHARED=true",
		"ZEPH_DATABASE_URL=postgres://db/zephbot", "ZEPH_REDIS_URL=redis://redis",
	}, more...)})
	if err != nil {
		t.Fatal(err)
	}
	c := newCore(Options{Config: cfg, Log: zerolog.Nop(), Now: time.Now})
	c.stores = &persistence.Stores{Bot: bottest.New()}
	return c
}

// TestAuditOfProcesses: each process that shares writes a log of its own, where the command line finds all of them; a
// process that starts again goes on with its log; files that were rotated are not listed as logs.
func TestAuditOfProcesses(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"on the volume": nil, "where the configuration says": {"ZEPH_AUDIT_DESTINATION=logs/a.jsonl"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var paths []string
			for _, process := range []string{"one", "two", "one"} {
				c := sharing(t, dir, process, more...)
				if err := c.openAudit(); err != nil {
					t.Fatal(err)
				}
				if err := c.audit.Keep(&tools.Call{Tool: "bash", Trail: &tools.Trail{}}, &tools.Result{}, nil); err != nil {
					t.Fatal(err)
				}
				if paths = append(paths, c.auditTo()); process == "one" && len(paths) == 1 {
					second := sharing(t, dir, process, more...)
					if err := second.openAudit(); err != nil || second.auditTo() == paths[0] {
						t.Errorf("two writers of %s: %v", paths[0], err)
					}
					if err := second.audit.Close(); err != nil {
						t.Error(err)
					}
				}
				if err := c.audit.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if paths[0] != paths[2] || paths[0] == paths[1] {
				t.Errorf("logs %q", paths)
			}
			rotated := strings.TrimSuffix(paths[1], ".jsonl") + "-20260304.jsonl"
			if err := os.WriteFile(rotated, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c := sharing(t, dir, "one", more...)
			lines := map[string]int{}
			for _, log := range c.opts.Layout().Logs() {
				if log.Mode != layout.Serve || !log.Exists() {
					continue
				}
				raw, err := os.ReadFile(log.Path)
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(raw), "\n"); n > 0 {
					lines[log.Path] = n
				}
			}
			if diff := cmp.Diff(map[string]int{paths[0]: 2, paths[1]: 1}, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTokensOfProcesses: the tokens of signed-in servers are where all processes see them, and the command line too.
func TestTokensOfProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := sharing(t, dir, "one"), sharing(t, dir, "two")
	if a, b := one.opts.Layout().Tokens(), two.opts.Layout().Tokens(); a != b || !strings.HasPrefix(a, filepath.Join(dir, "files")) {
		t.Errorf("tokens in %s and %s", a, b)
	}
	if got := sharing(t, dir, "one", "ZEPH_WORKSPACES_SHARED=false").opts.Layout().Tokens(); got != filepath.Join(dir, "one", "mcp-tokens") {
		t.Errorf("of one process: %s", got)
	}
}
