package lastend_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/lastend"
)

// group is a control group as the kernel shows it (Documentation/admin-guide/cgroup-v2.rst, memory).
type group struct {
	t   *testing.T
	dir string
}

func (g group) set(file, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g group) kills(n string) {
	g.set("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill "+n+"\noom_group_kill 0\n")
}

// TestLastEnd: the next process says what is known about the end of the last one, and nothing that is not.
func TestLastEnd(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Date(2026, 11, 29, 4, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		limit, used, later string // memory.max, memory.current, and memory.current after that
		kills              string // when the next one begins
		closed             bool
		want               string // "" = nothing is said
	}{
		"killed by the kernel":   {"536870912\n", "530000000\n", "", "1", false, "the kernel has killed for the memory limit of 512 MB"},
		"short, a new container": {"536870912\n", "530000000\n", "", "0", false, "98% of its memory of 512 MB was in use when it last looked (2026-11-29 04:00:00)"},
		"power failure":          {"536870912\n", "100000000\n", "", "0", false, ""},
		"was short, no longer":   {"536870912\n", "530000000\n", "100000000\n", "0", false, ""},
		"no limit":               {"max\n", "530000000\n", "", "0", false, ""},
		"closed in order":        {"536870912\n", "530000000\n", "", "1", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, dir := group{t, t.TempDir()}, t.TempDir()
			g.set("memory.max", c.limit)
			g.set("memory.current", c.used)
			g.kills("0")
			n, last, err := lastend.Begin(dir, g.dir, now)
			if err != nil || last != "" {
				t.Fatal(last, err)
			}
			looks := func() {
				if err := n.Look(); err != nil {
					t.Fatal(err)
				}
			}
			looks()
			if c.later != "" {
				g.set("memory.current", c.later)
				looks()
			}
			if c.closed {
				if err := n.End(); err != nil {
					t.Fatal(err)
				}
			}
			g.kills(c.kills)
			_, last, err = lastend.Begin(dir, g.dir, now)
			if err != nil || !strings.Contains(last, c.want) || c.want == "" && last != "" {
				t.Errorf("%q, %v", last, err)
			}
		})
	}
	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "running.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, last, err := lastend.Begin(dir, "", now); err == nil || last != "" {
			t.Error(last, err)
		}
		if _, last, err := lastend.Begin(dir, "", now); err != nil || last != "" {
			t.Error(last, err)
		}
	})
}
