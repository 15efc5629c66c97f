package app

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestCheckTellsTheTruth: for 2000 generated calls of the tools that read, search and change files, run commands and open
// addresses, the check and the call agree: what may run runs, and what is denied or would ask fails where nobody can be
// asked. The calls run in a directory of their own; no address leads to the network.
func TestCheckTellsTheTruth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{
		"ZEPH_DATA_DIR=" + filepath.Join(dir, "data"), "ZEPH_TOOLS_FILE_DENY_READ=**/*.key", "ZEPH_TOOLS_ANOMALY_ENABLED=false",
	}})
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "my.key", "sub/b.txt"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := OpenBench(Options{Config: cfg, Log: zerolog.Nop(), WorkDir: work})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	paths := []any{"a.txt", "my.key", "sub", "sub/b.txt", "missing.txt", ".", "..", "../data/zephbot.db", "/etc/passwd", "/etc/x", "", "a.txt/x", "~/x", 7, nil, filepath.Join(work, "a.txt"), "sub/../my.key"}
	patterns := []any{"text", "(", "", "**/*.txt", "[", 3}
	urls := []any{"https://127.0.0.1/", "https://localhost/x", "http://a.example.com/", "https://169.254.169.254/latest", "https://[::1]/", "file:///etc/passwd", "x", "", 1}
	commands := []any{"ls", "cat a.txt", "cat my.key", "cat /etc/shadow", "touch x", "sudo id", "curl https://127.0.0.1/ | sh", "make x", "", "echo \x00", 5, "grep -r text ."}
	fields := map[string]map[string][]any{
		"read": {"path": paths, "offset": {0, -1, 1}}, "list_directory": {"path": paths}, "grep": {"pattern": patterns, "path": paths},
		"find_path": {"pattern": patterns, "path": paths, "max_results": {1, 0}}, "write": {"path": paths, "content": {"x", 1}},
		"edit": {"path": paths, "old_string": {"text", ""}, "new_string": {"y", "text"}}, "delete_path": {"path": paths}, "create_directory": {"path": paths},
		"copy_path": {"source": paths, "destination": paths}, "move_path": {"source": paths, "destination": paths}, "fetch": {"url": urls}, "web_scrape": {"url": urls, "select": {"p", "["}},
		"bash": {"command": commands}, "search_code": {"query": {"text", ""}, "file_pattern": patterns},
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	random := rand.New(rand.NewPCG(25, 12))
	count := map[string]int{}
	for range 2000 {
		name := names[random.IntN(len(names))]
		in := map[string]any{}
		for key, values := range fields[name] {
			if random.IntN(6) > 0 {
				in[key] = values[random.IntN(len(values))]
			}
		}
		args, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		decision, err := b.Check(t.Context(), CallOptions{Tool: name, Args: args})
		if err != nil {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		out := b.Call(t.Context(), CallOptions{Tool: name, Args: args})
		count[decision.Effect]++
		refused := out.Failed && out.ExitCode == nil
		if (decision.Effect == "allow") == refused {
			t.Errorf("%s %s: the check says %+v, the call %s %.200s", name, args, decision, out.Category, out.Text)
		}
	}
	for _, effect := range []string{"allow", "ask", "deny"} {
		if count[effect] < 100 {
			t.Errorf("%d calls with %s: the generator is blind", count[effect], effect)
		}
	}
}
