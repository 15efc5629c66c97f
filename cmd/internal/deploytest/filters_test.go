package deploytest_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/tools/filter"
)

// leastSaved is the share of the corpus's tokens that the filters have to save.
const leastSaved = 0.70

// output is a file of the filters' corpus.
type output struct {
	name, origin, command, text string
	exit                        int
	failures                    []string
}

// outputs reads the corpus.
func outputs(t *testing.T) []output {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "tools/filter/testdata/corpus/*.txtar"))
	if err != nil || len(files) < 80 {
		t.Fatalf("the corpus has %d files: %v", len(files), err)
	}
	list := make([]output, len(files))
	for i, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := output{name: filepath.Base(file), origin: strings.TrimSpace(string(archive.Comment))}
		for _, part := range archive.Files {
			text := strings.TrimSuffix(string(part.Data), "\n")
			switch part.Name {
			case "command":
				o.command = text
			case "input":
				o.text = text
			case "exit":
				if o.exit, err = strconv.Atoi(text); err != nil {
					t.Fatalf("%s: exit: %v", file, err)
				}
			case "keep":
				for line := range strings.Lines(text) {
					if line = strings.TrimSpace(line); line != "" {
						o.failures = append(o.failures, line)
					}
				}
			}
		}
		list[i] = o
	}
	return list
}

// measured is a row of the table.
type measured struct{ samples, before, after, failures, kept int }

func (m *measured) add(o output, text string) {
	m.samples++
	m.before += window.Tokens(o.text)
	m.after += window.Tokens(text)
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		lines[strings.TrimSpace(line)] = true
	}
	for _, want := range o.failures {
		m.failures++
		if lines[want] {
			m.kept++
		}
	}
}

func (m *measured) saved() float64 { return 1 - float64(m.after)/float64(max(m.before, 1)) }

func (m *measured) row(name string) string {
	kept := "–"
	if m.failures > 0 {
		kept = fmt.Sprintf("%d of %d", m.kept, m.failures)
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %.1f %% | %s |\n", name, m.samples, m.before, m.after, 100*m.saved(), kept)
}

const noRule = "none: sanitised only"

// measure filters the corpus, and gives the figures by rule and in all.
func measure(t *testing.T, list []output) (rows map[string]*measured, all *measured) {
	t.Helper()
	engine := filter.NewEngine(filter.Options{})
	rows, all = map[string]*measured{}, &measured{}
	for _, o := range list {
		out := engine.Filter(o.command, &o.exit, o.text)
		names := out.Rules
		if len(names) == 0 {
			names = []string{noRule}
		}
		for _, name := range names {
			if rows[name] == nil {
				rows[name] = &measured{}
			}
			rows[name].add(o, out.Text)
		}
		all.add(o, out.Text)
	}
	return rows, all
}

// table writes the figures: rules in the order of their file, the total, and the origins of the samples.
func table(t *testing.T, list []output, rows map[string]*measured, all *measured) string {
	t.Helper()
	rules, problems := filter.Load("")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var b strings.Builder
	b.WriteString("| rule | samples | tokens before | after | saved | failure lines kept |\n|---|---|---|---|---|---|\n")
	var idle []string
	for _, name := range append(rules.Names(), noRule) {
		if m := rows[name]; m != nil {
			b.WriteString(m.row(name))
		} else {
			idle = append(idle, name)
		}
	}
	b.WriteString(all.row("**all**"))
	if len(idle) > 0 {
		fmt.Fprintf(&b, "\nWithout a sample in the corpus, but with a golden output: %s.\n", strings.Join(idle, ", "))
	}
	origins := map[string]int{}
	for _, o := range list {
		origins[o.origin]++
	}
	b.WriteString("\nOrigin of the samples:\n\n")
	for _, origin := range slices.Sorted(maps.Keys(origins)) {
		fmt.Fprintf(&b, "- %d %s\n", origins[origin], origin)
	}
	return b.String()
}

// TestFiltersDoc: the table of docs/filters.md is what the filters do over the corpus, they save what they promise, and
// hide no failure. ZEPH_UPDATE=1 writes it again.
func TestFiltersDoc(t *testing.T) {
	t.Parallel()
	list := outputs(t)
	rows, all := measure(t, list)
	if all.kept != all.failures || all.failures == 0 {
		t.Errorf("%d of %d failure lines are kept", all.kept, all.failures)
	}
	if all.saved() < leastSaved {
		t.Errorf("%.1f %% of the tokens saved, want %.0f %%", 100*all.saved(), 100*leastSaved)
	}
	name := filepath.Join(root, "docs", "filters.md")
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- measured -->\n", "<!-- end -->"
	head, rest, ok := bytes.Cut(doc, []byte(begin))
	_, tail, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		t.Fatalf("docs/filters.md has no place for the table: %q … %q", begin, end)
	}
	want := string(head) + begin + table(t, list, rows, all) + end + string(tail)
	if os.Getenv("ZEPH_UPDATE") != "" {
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(doc) != want {
		t.Error("the table of docs/filters.md is not what the filters do: ZEPH_UPDATE=1 go test ./cmd/internal/deploytest -run TestFiltersDoc")
	}
}

var (
	example  = regexp.MustCompile("(?s)```toml\n(.*?)```")
	strategy = regexp.MustCompile(`type = "([a-z_]+)"`)
)

// TestFiltersDocExamples: every example of docs/filters.md is a file of rules without a fault, and every strategy has
// one.
func TestFiltersDocExamples(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "filters.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for i, m := range example.FindAllStringSubmatch(string(doc), -1) {
		file := filepath.Join(t.TempDir(), filter.FileName)
		if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		rules, problems := filter.Load(file)
		if len(problems) > 0 || len(rules.Names()) != strings.Count(m[1], "[[rules]]") {
			t.Errorf("example %d: %v\n%s", i+1, problems, m[1])
		}
		for _, s := range strategy.FindAllStringSubmatch(m[1], -1) {
			shown[s[1]] = true
		}
	}
	for name := range strings.FieldsSeq("strip_noise truncate keep_matching strip_annotated test_summary group_by_rule git_status git_diff dedup fold diagnostics listing") {
		if !shown[name] {
			t.Errorf("the strategy %s has no example", name)
		}
	}
}
