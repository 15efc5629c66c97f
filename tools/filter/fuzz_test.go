package filter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools/filter"
)

// FuzzFilter holds the laws of size and recovery on whatever was printed, and never panics on a command.
func FuzzFilter(f *testing.F) {
	for i, command := range commands {
		f.Add(command, strings.Join(failing[:i%len(failing)], "\n")+"\n"+strings.Join(harmless, "\n"), i%3-1)
	}
	f.Add("a $(b", "\x1b]0;\x1b[1\r\r\n[stderr] \r", 1)
	e := engine(f, filter.Options{})
	f.Fuzz(func(t *testing.T, command, text string, exit int) {
		status := &exit
		if exit < 0 {
			status = nil
		}
		out := e.Filter(command, status, text)
		whole := e.Filter("nothing", nil, text).Text
		if len(out.Text) > len(whole) || out.LinesOut > out.LinesIn+strings.Count(text, "\r") {
			t.Fatalf("%q grew to %q", text, out.Text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(out.Text) {
			t.Fatalf("%q became broken text %q", text, out.Text)
		}
		if !out.Dropped && strings.Join(strings.Fields(out.Text), "") != strings.Join(strings.Fields(strings.ReplaceAll(whole, "[stderr] \n", "\n")), "") && !strings.Contains(whole, "[stderr] ") {
			t.Fatalf("something was dropped without a report: %q from %q", out.Text, whole)
		}
	})
}

// FuzzRules loads whatever a file of rules holds, and runs what was loaded.
func FuzzRules(f *testing.F) {
	f.Add(hostile)
	f.Add(good)
	f.Add("rules = [ { name = \"a\", match = { regex = \"(?i)^a|b*$\" }, strategy = { type = \"strip_annotated\", prefixes = [\"note:\"] } } ]")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), filter.FileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rules, problems := filter.Load(path)
		for _, p := range problems {
			if p.File == "" || p.What == "" || p.Do == "" {
				t.Fatalf("a problem that says too little: %+v", p)
			}
		}
		e := filter.NewEngine(filter.Options{Rules: rules})
		whole := strings.Join(append(append([]string{}, failing...), harmless...), "\n")
		for _, command := range []string{"a", "user all", "x y", "make"} {
			if out := e.Filter(command, nil, whole); !strings.Contains(out.Text, "panic: runtime error") {
				t.Fatalf("%s: a failure is hidden: %s", command, out.Text)
			}
		}
	})
}
