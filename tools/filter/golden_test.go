package filter_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/tools/filter"
)

var update = flag.Bool("update", false, "write the golden outputs anew")

// TestGolden runs testdata/golden: one file for every built-in rule, and strategy-NAME.txtar for every strategy. The
// section exit is a number, or "none" for a command that did not end by itself.
func TestGolden(t *testing.T) {
	t.Parallel()
	builtIn, _ := filter.Load("")
	names := builtIn.Names()
	for s := range strings.FieldsSeq("strip_noise truncate keep_matching strip_annotated test_summary group_by_rule git_status git_diff dedup fold diagnostics listing") {
		names = append(names, "strategy-"+s)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, filepath.Join("testdata", "golden", name+".txtar"), name)
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".txtar"); !slices.Contains(names, name) {
			t.Errorf("%s belongs to no rule", f)
		}
	}
}

func golden(t *testing.T, file, name string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	parts := map[string]string{}
	for _, f := range archive.Files {
		parts[f.Name] = string(f.Data)
	}
	e := engine(t, filter.Options{})
	if own, ok := parts["rules"]; ok {
		rules, problems := load(t, own)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		e = engine(t, filter.Options{Rules: rules})
	}
	var exit *int
	if text := strings.TrimSpace(parts["exit"]); text != "none" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("exit: %v", err)
		}
		exit = &n
	}
	out := e.Filter(strings.TrimSpace(parts["command"]), exit, parts["input"])
	if !slices.Contains(out.Rules, name) {
		t.Errorf("rules %v, want %s among them", out.Rules, name)
	}
	got := map[string]string{"output": strings.TrimSuffix(out.Text, "\n") + "\n", "confidence": out.Level.String() + "\n"}
	if *update {
		write(t, file, archive, got)
		return
	}
	for key, text := range got {
		if diff := cmp.Diff(parts[key], text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func write(t *testing.T, file string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return got[f.Name] != "" })
	for _, key := range []string{"output", "confidence"} {
		archive.Files = append(archive.Files, txtar.File{Name: key, Data: []byte(got[key])})
	}
	if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}
