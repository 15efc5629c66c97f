package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// desk is the tools and rules of a configuration, working in a directory as on the command line.
type desk struct {
	t     *testing.T
	dir   string
	bench *app.Bench
}

// newServerHandler writes files, the configuration zephbot.toml among them, and opens the tools.
func newDesk(t *testing.T, files map[string]string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(config.Source{WorkDir: filepath.Join(dir, "work"), Home: dir, File: filepath.Join(dir, "work", "zephbot.toml")})
	if err != nil {
		t.Fatal(err)
	}
	bench, err := app.OpenBench(app.Options{Config: cfg, Log: zerolog.Nop(), WorkDir: filepath.Join(dir, "work")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bench.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &desk{t: t, dir: filepath.Join(dir, "work"), bench: bench}
}

// call executes a call that somebody approves.
func (d *desk) call(tool string, args map[string]any) app.CallOutcome {
	d.t.Helper()
	return d.bench.Call(d.t.Context(), app.CallOptions{Tool: tool, Args: d.args(args), Yes: true})
}

func (d *desk) check(tool string, args map[string]any) app.Decision {
	d.t.Helper()
	got, err := d.bench.Check(d.t.Context(), app.CallOptions{Tool: tool, Args: d.args(args)})
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

func (d *desk) args(args map[string]any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		d.t.Fatal(err)
	}
	return raw
}

func (d *desk) content(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// TestAttackWhatTheNextStartObeys: no tool reads or writes a file that the bot obeys, also when a person approves the
// call.
func TestAttackWhatTheNextStartObeys(t *testing.T) {
	t.Parallel()
	obeyed := map[string]string{
		"work/rules/policy.toml": "# CANARY\n[[rules]]\neffect = \"allow\"\ntool = \"*\"\n", "work/judge.txt": "CANARY never delete",
		"work/filters.toml": "# CANARY\n", "work/.env": "CANARY=1", "work/server.py": "# CANARY", "work/log/audit.jsonl": `{"x":"CANARY"}`,
		"work/zephbot.toml": `# CANARY
data_dir = "data"
[audit]
destination = "log/audit.jsonl"
[tools.policy]
enabled = true
policy_file = "rules/policy.toml"
[tools.adversarial_policy]
policy_file = "judge.txt"
[[mcp.servers]]
id = "x"
command = "python3"
args = ["server.py"]
`,
	}
	d := newDesk(t, obeyed)
	for path, text := range obeyed {
		name := strings.TrimPrefix(path, "work/")
		link := "link-" + filepath.Base(name)
		if err := os.Symlink(name, filepath.Join(d.dir, link)); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{name, filepath.Join(d.dir, name), "./x/../" + name, link} {
			for tool, args := range map[string]map[string]any{
				"read": {"path": given}, "grep": {"pattern": "CANARY", "path": given}, "write": {"path": given, "content": "evil"},
				"edit": {"path": given, "old_string": "CANARY", "new_string": "evil"}, "copy_path": {"source": given, "destination": "stolen"},
			} {
				if out := d.call(tool, args); !out.Failed && tool != "copy_path" || strings.Contains(out.Text, "CANARY=") || strings.Contains(out.Text, "CANARY never") {
					t.Errorf("%s %s: %+v", tool, given, out)
				}
			}
			for _, command := range []string{"cat " + given, "cp " + given + " stolen; cat stolen", "echo evil > " + given, "tac < " + given} {
				if out := d.call("bash", map[string]any{"command": command}); strings.Contains(out.Text, "CANARY") && strings.Contains(d.level(), "Landlock") {
					t.Errorf("%s: %+v", command, out)
				}
			}
		}
		_ = d.call("delete_path", map[string]any{"path": name})
		_ = d.call("move_path", map[string]any{"source": name, "destination": "moved"})
		if got := d.content(name); name != "log/audit.jsonl" && strings.Contains(d.level(), "Landlock") && got != strings.ReplaceAll(text, "DIR", filepath.Dir(d.dir)) {
			t.Errorf("%s holds %q", name, got)
		}
	}
	// A place where the next start would look for a configuration.
	for tool, args := range map[string]map[string]any{"write": {"path": "../.config/zephbot/zephbot.toml", "content": "x"}, "copy_path": {"source": "link-judge.txt", "destination": "zephbot.toml"}} {
		if out := d.call(tool, args); !out.Failed {
			t.Errorf("%s: %+v", tool, out)
		}
	}
}

// level is what the kernel enforces here.
func (d *desk) level() string { return d.bench.Sandbox() }

// TestAllowedPathsReplaceTheWorkingDirectory: what is listed is all there is; "." is the working directory.
func TestAllowedPathsReplaceTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list      string
		pwd       string
		reads     map[string]bool // path → may be read
		mustWrite string
	}{
		{`["DIR/share"]`, "share", map[string]bool{"one.txt": true, "DIR/work/two.txt": false, "DIR/share/one.txt": true}, "DIR/share/new"},
		{`["DIR/share", "."]`, "work", map[string]bool{"two.txt": true, "DIR/work/two.txt": true, "DIR/share/one.txt": true}, "DIR/share/new"},
		{`["DIR"]`, "work", map[string]bool{"two.txt": true, "../share/one.txt": true}, "DIR/share/new"},
		{`[]`, "work", map[string]bool{"two.txt": true, "DIR/share/one.txt": false}, "new"},
	} {
		t.Run(tt.list, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, map[string]string{
				"share/one.txt": "ONE", "work/two.txt": "TWO",
				"work/zephbot.toml": "data_dir = \"DIR/data\"\n[tools.shell]\nallowed_paths = " + tt.list + "\n[tools.file]\nallowed_paths = " + tt.list + "\n",
			})
			top := filepath.Dir(d.dir)
			if out := d.call("bash", map[string]any{"command": "pwd"}); strings.TrimSpace(out.Text) != filepath.Join(top, tt.pwd) {
				t.Errorf("commands run in %q, want %s", out.Text, tt.pwd)
			}
			for path, ok := range tt.reads {
				path = strings.ReplaceAll(path, "DIR", top)
				if out := d.call("read", map[string]any{"path": path}); out.Failed == ok {
					t.Errorf("read %s: %+v", path, out)
				}
				if out := d.call("bash", map[string]any{"command": "cat " + path}); out.Failed == ok && strings.Contains(d.level(), "Landlock") {
					t.Errorf("cat %s: %+v", path, out)
				}
			}
			path := strings.ReplaceAll(tt.mustWrite, "DIR", top)
			if out := d.call("bash", map[string]any{"command": "echo x > " + path}); out.Failed {
				t.Errorf("bash cannot write %s: %+v", path, out)
			}
			if out := d.call("write", map[string]any{"path": path, "content": "x"}); out.Failed {
				t.Errorf("write cannot write %s: %+v", path, out)
			}
		})
	}
}

// TestAttackStartupFilesAsk: an allow rule for write does not cover what later commands obey, through a link neither.
func TestAttackStartupFilesAsk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"work/zephbot.toml": "data_dir = \"DIR/data\"\n[[tools.permissions.write]]\npattern = \"*\"\naction = \"allow\"\n"})
	if err := os.Symlink(".bashrc", filepath.Join(d.dir, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"plain.txt": "allow", ".bashrc": "ask", "notes.txt": "ask", "./x/../.git/hooks/pre-commit": "ask"} {
		if got := d.check("write", map[string]any{"path": path, "content": "x"}); got.Effect != want {
			t.Errorf("write %s: %+v, want %s", path, got, want)
		}
	}
}
