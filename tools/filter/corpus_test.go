package filter_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/tools/filter"
)

// sample is the output of a real program, or one in its format if the program cannot run on a developer's machine; its
// comment says which.
type sample struct {
	name, origin, command string
	exit                  int
	input                 string
	keep                  []string // lines that tell of a failure: each has to survive
}

// corpus reads testdata/corpus.
func corpus(tb testing.TB) []sample {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.txtar"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) < 80 {
		tb.Fatalf("%d files in the corpus", len(files))
	}
	var list []sample
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		archive := txtar.Parse(data)
		s := sample{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), origin: strings.TrimSpace(string(archive.Comment))}
		for _, f := range archive.Files {
			text := strings.TrimSuffix(string(f.Data), "\n")
			switch f.Name {
			case "command":
				s.command = text
			case "exit":
				if s.exit, err = strconv.Atoi(text); err != nil {
					tb.Fatalf("%s: exit: %v", file, err)
				}
			case "input":
				s.input = text
			case "keep":
				for line := range strings.Lines(text) {
					if line = strings.TrimSpace(line); line != "" {
						s.keep = append(s.keep, line)
					}
				}
			}
		}
		if s.command == "" || s.input == "" || s.origin == "" {
			tb.Fatalf("%s: command, input and origin are needed", file)
		}
		list = append(list, s)
	}
	return list
}

// TestCorpus checks the laws on real outputs: no failure is hidden, nothing grows, and whatever is dropped is reported
// as dropped.
func TestCorpus(t *testing.T) {
	t.Parallel()
	engine := filter.NewEngine(filter.Options{})
	for _, s := range corpus(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			out := engine.Filter(s.command, &s.exit, s.input)
			lines := map[string]bool{}
			for line := range strings.Lines(out.Text) {
				lines[strings.TrimSpace(line)] = true
			}
			for _, want := range s.keep {
				if !lines[want] {
					t.Errorf("%s: lost %q\n%s", s.command, want, out.Text)
				}
			}
			if out.CharsOut > out.CharsIn {
				t.Errorf("grew from %d to %d characters", out.CharsIn, out.CharsOut)
			}
			if out.LinesOut < out.LinesIn/2 && !out.Dropped {
				t.Errorf("%d of %d lines, and nothing is said to be dropped", out.LinesOut, out.LinesIn)
			}
		})
	}
}

// TestCorpusSaves pins what the filters are for: over the corpus at least 70 % of the characters are saved.
func TestCorpusSaves(t *testing.T) {
	t.Parallel()
	engine := filter.NewEngine(filter.Options{})
	in, out := 0, 0
	for _, s := range corpus(t) {
		o := engine.Filter(s.command, &s.exit, s.input)
		in, out = in+o.CharsIn, out+o.CharsOut
		t.Logf("%-24s %7d -> %6d  %5.1f%%  %s %v", s.name, o.CharsIn, o.CharsOut, 100-100*float64(o.CharsOut)/float64(max(1, o.CharsIn)), o.Level, o.Rules)
	}
	if saved := 1 - float64(out)/float64(in); saved < 0.70 {
		t.Errorf("%.1f%% of the corpus saved, want 70%%", 100*saved)
	}
}
