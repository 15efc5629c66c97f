package filter_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/filter"
)

// load reads rules from a file with this text.
func load(t *testing.T, text string) (*filter.Rules, []filter.Problem) {
	t.Helper()
	path := filepath.Join(t.TempDir(), filter.FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return filter.Load(path)
}

const good = "\n[[rules]]\nname = \"good\"\nmatch = { exact = \"x y\" }\nstrategy = { type = \"git_status\" }\n"

func TestBrokenRules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ rule, want string }{
		"no name":        {`match = { prefix = "a" }` + "\n" + `strategy = { type = "dedup" }`, "name is missing"},
		"no match":       {`name = "b"` + "\n" + `strategy = { type = "dedup" }`, "match is missing"},
		"two matches":    {`name = "b"` + "\n" + `match = { prefix = "a", exact = "b" }` + "\n" + `strategy = { type = "dedup" }`, "exactly one"},
		"empty match":    {`name = "b"` + "\n" + `match = { }` + "\n" + `strategy = { type = "dedup" }`, "exactly one"},
		"bad regex":      {`name = "b"` + "\n" + `match = { regex = "(" }` + "\n" + `strategy = { type = "dedup" }`, "bad regular expression"},
		"long regex":     {`name = "b"` + "\n" + `match = { regex = "` + strings.Repeat("a", 513) + `" }` + "\n" + `strategy = { type = "dedup" }`, "at most 512"},
		"large regex":    {`name = "b"` + "\n" + `match = { regex = "(` + strings.Repeat("a", 50) + `){1000}" }` + "\n" + `strategy = { type = "dedup" }`, "too large"},
		"match no table": {`name = "b"` + "\n" + `match = "a"` + "\n" + `strategy = { type = "dedup" }`, "has to be a table"},
		"number name":    {`name = 1` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "dedup" }`, "name has to be a text"},
		"no strategy":    {`name = "b"` + "\n" + `match = { prefix = "a" }`, "strategy is missing"},
		"no type":        {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { }`, "strategy.type is missing"},
		"unknown type":   {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "shrink" }`, `unknown strategy "shrink"`},
		"unknown key":    {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "truncate", heads = 3 }`, `unknown key "heads"`},
		"typo in rule":   {`name = "b"` + "\n" + `enable = true` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "dedup" }`, `unknown key "enable"`},
		"enabled text":   {`name = "b"` + "\n" + `enabled = "no"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "dedup" }`, "true or false"},
		"no patterns":    {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "strip_noise", patterns = [] }`, "needs patterns"},
		"keep nothing":   {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "keep_matching" }`, "needs patterns"},
		"annotated":      {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "strip_annotated", summary_pattern = "x" }`, "needs patterns or prefixes"},
		"head and tail":  {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "truncate", max_lines = 10, head = 8, tail = 5 }`, "more than max_lines"},
		"negative":       {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "truncate", head = -1 }`, "whole number"},
		"dollar":         {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "dedup", normalize_patterns = [ { pattern = "x", replacement = "$1" } ] }`, "write $$"},
		"same name":      {strings.TrimPrefix(good, "\n[[rules]]\n"), "the same name"},
		"pattern list":   {`name = "b"` + "\n" + `match = { prefix = "a" }` + "\n" + `strategy = { type = "strip_noise", patterns = [1] }`, "list of texts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, problems := load(t, good+"\n[[rules]]\n"+tc.rule+"\n"+strings.Replace(good, `"good"`, `"last"`, 1))
			if got := strings.Join(rules.Names(), ","); got != "good,last" {
				t.Errorf("loaded %s", got)
			}
			if len(problems) != 1 || !strings.Contains(problems[0].String(), tc.want) || !strings.Contains(problems[0].Rule, "rule 2") {
				t.Errorf("problems %v, want one of rule 2 with %q", problems, tc.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	builtIn, problems := filter.Load("")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	first := []string{
		"cargo-build", "cargo-test", "cargo-clippy", "git-status", "git-diff", "git-log", "git-push", "ls", "log-dedup", "docker-build", "docker-compose", "npm-install",
		"pip-install", "make", "pytest", "go-test", "terraform-plan", "kubectl-get", "brew-install", "find", "grep-rg", "curl-wget", "du-df-ps", "js-test", "linter",
	}
	got := slices.DeleteFunc(builtIn.Names(), func(name string) bool {
		return name == "terraform-init" || name == "log-fold" || name == "diagnostics" || name == "progress"
	})
	if diff := cmp.Diff(first, got[:len(first)]); diff != "" {
		t.Errorf("built-in rules (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"too large": good + "#" + strings.Repeat("x", filter.MaxFile), "no TOML": "[[rules", "no list": "rules = 3", "no tables": "rules = [1]",
	} {
		rules, problems := load(t, text)
		if len(problems) != 1 || len(rules.Names()) != len(builtIn.Names()) {
			t.Errorf("%s: %d rules, problems %v", name, len(rules.Names()), problems)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		if rules, problems := filter.Load(path); len(problems) != 1 || len(rules.Names()) != len(builtIn.Names()) {
			t.Errorf("%s: problems %v", path, problems)
		}
	}
	rules, problems := load(t, "extra = 1\n"+good+"\n[[rules]]\nname = \"npm-install\"\nenabled = false\n")
	if len(problems) != 1 || strings.Join(rules.Names(), ",") != "good" {
		t.Errorf("%v %v", rules.Names(), problems)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	with, without := t.TempDir(), t.TempDir()
	file := filepath.Join(with, filter.FileName)
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ configured, beside, want string }{
		{"", "", ""},
		{"", with, file},
		{"", without, ""},
		{with, without, file},
		{file, "", file},
		// named explicitly, so that Load reports that it does not exist
		{filepath.Join(without, "other.toml"), with, filepath.Join(without, "other.toml")},
	} {
		if got := filter.Find(tc.configured, tc.beside); got != tc.want {
			t.Errorf("Find(%q, %q) = %q, want %q", tc.configured, tc.beside, got, tc.want)
		}
	}
}

// TestConstantsCompile: the built-in rules and the security patterns are compiled for the first text, when an error in
// them could not be reported.
func TestConstantsCompile(t *testing.T) {
	t.Parallel()
	if rules, problems := filter.Load(""); len(problems) > 0 || len(rules.Names()) < 40 {
		t.Errorf("%d built-in rules, problems %v", len(rules.Names()), problems)
	}
	if all, compiled := filter.SecurityPatterns(); compiled != all || all == 0 {
		t.Errorf("%d of %d security patterns compile", compiled, all)
	}
}
