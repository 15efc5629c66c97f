package filter_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/tools/filter"
)

// failing are lines that have to survive a run that failed, whatever the rules are.
var failing = []string{
	"error: could not compile `x`", "error[E0308]: mismatched types", "main.go:12:5: undefined: foo", "src/a.ts(3,7): error TS2322: Type 'x'", "--- FAIL: TestA (0.00s)",
	"FAIL\texample.com/a\t0.1s", "panic: runtime error: index out of range", "npm ERR! code ELIFECYCLE", "npm error code E404", "Traceback (most recent call last):",
	`  File "a.py", line 3, in <module>`, "E       assert 1 == 2", "AssertionError: expected 1", "fatal: not a git repository", "make: *** [all] Error 2",
	"bash: foo: command not found", "ls: cannot access 'x': No such file or directory", "  ✕ adds numbers (3 ms)", "  ● suite › adds", "not ok 3 - adds", "exit status 1",
	"    a_test.go:9: got 1, want 2", "thread 'main' panicked at src/main.rs:2:5:", "test b ... FAILED", "FAILED tests/test_a.py::test_b - assert 1 == 2", "Killed",
	"Segmentation fault (core dumped)", "E: Unable to locate package x", "ERROR: failed to solve: process", "[ERROR] COMPILATION ERROR", " > src/App.tsx:3:1", "Permission denied",
	"Error from server (NotFound): pods \"x\" not found", "│ Error: Invalid reference", "ssh: connect to host x port 22: Connection refused", "  1) suite fails:", "FAIL src/a.test.js",
	"1 failed, 2 passed in 0.1s", "[stderr] error: boom",
}

// harmless are lines around them, as tools print them.
var harmless = []string{
	"", "", "   Compiling serde v1.0", "[stderr]    Compiling thiserror v1.0", "ok  \texample.com/b\t0.1s", "=== RUN   TestB", "--- PASS: TestB (0.00s)", "PASS", "test a ... ok",
	"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out", "tests/test_a.py ....  [ 50%]", "added 3 packages in 2s", "Step 1/3 : FROM scratch",
	"2026-01-01T00:00:01Z up", "2026-01-01T00:00:02Z up", "modified:   a.go", "\tmodified:   a.go", "Changes not staged for commit:", "On branch main", " M a.go", "?? b.go",
	"diff --git a/x b/x", "index 1..2 100644", "@@ -1 +1 @@", "+new", "-old", "  ✓ works (1 ms)", "# tests 3", "warning: unused variable: `x`", " --> src/a.rs:1:5",
	"  = note: `#[warn(unused_variables)]` on by default", "node_modules", "target", "plain text of a program", "10%\r50%\r100%", "\x1b[32mgreen\x1b[0m", "é ü ✓ 日本", "x", "x", "x",
	"running 1 test", "5 passing (3ms)", "===== 2 passed in 0.1s =====", "   Doc-tests a", "{\"Action\":\"run\",\"Test\":\"TestA\"}", "{\"Action\":\"pass\",\"Package\":\"a\"}",
	"a.c:1:2: warning: unused variable ‘x’ [-Wunused]", "b.c:7:2: warning: unused variable ‘x’ [-Wunused]", "    7 | int x;", "      |     ^", "b.c:7:3: note: declared here",
	"In file included from b.c:1:", "b.c: In function ‘f’:", "a.py:1:1: E302 expected 2 blank lines", "b.py:3:1: E302 expected 2 blank lines", "src/a/b.go", "src/a/c.go", "src/a:",
	"10 of 40 (25 %)", "20 of 40 (50 %)", "30 of 40 (75 %)", "served 3 in 5ms", "served 4 in 7ms", "    # Subtest: adds", "  ---", "  duration_ms: 0.3", "  ...",
}

// commands reach all strategies; "user …" ones those of hostile rules.
var commands = []string{
	"cargo test", "cargo clippy", "cargo build", "git status", "git diff", "git log", "git push", "ls", "journalctl -u x", "docker build .", "npm install", "pip install x", "make",
	"pytest", "go test -v ./...", "go test -json ./...", "terraform plan", "kubectl get pods", "find .", "grep -r x .", "npm test", "eslint .", "cd x && go test ./... 2>&1 | tail -80",
	"git diff; echo done", "make -k", "gcc -c a.c", "flake8", "tar tvf a.tar", "ls -R", "python3 run.py", "kubectl logs x", "node --test", "user all", "user none", "user cut", "user dedup", "user annotated", "user group", "user fold", "frobnicate", "a; b",
}

// hostile are rules that drop whatever they can.
const hostile = `
[[rules]]
name = "all"
match = { exact = "user all" }
strategy = { type = "strip_noise", patterns = [".*"] }
[[rules]]
name = "none"
match = { exact = "user none" }
strategy = { type = "keep_matching", patterns = ["passed|ok|^x$"] }
[[rules]]
name = "cut"
match = { exact = "user cut" }
strategy = { type = "truncate", max_lines = 0, head = 0, tail = 0 }
[[rules]]
name = "dedup"
match = { exact = "user dedup" }
strategy = { type = "dedup", normalize_patterns = [ { pattern = ".+", replacement = "same" } ] }
[[rules]]
name = "annotated"
match = { exact = "user annotated" }
strategy = { type = "strip_annotated", patterns = ["."], long_output_threshold = 2, keep_head = 1, keep_tail = 1 }
[[rules]]
name = "group"
match = { exact = "user group" }
strategy = { type = "group_by_rule", location_pattern = ".*", rule_pattern = ".*" }
[[rules]]
name = "fold"
match = { exact = "user fold" }
strategy = { type = "fold" }
[[rules]]
name = "fold2"
match = { exact = "user fold" }
strategy = { type = "diagnostics" }
[[rules]]
name = "fold3"
match = { exact = "user fold" }
strategy = { type = "listing", per_directory = 0 }
[[rules]]
name = "fold4"
match = { exact = "user fold" }
strategy = { type = "truncate", max_lines = 0, head = 0, tail = 0 }
`

func drawText(t *rapid.T) string {
	lines := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(harmless), rapid.SampledFrom(harmless), rapid.SampledFrom(failing), rapid.StringN(0, 30, 60)), 0, 150).Draw(t, "lines")
	return strings.Join(lines, "\n")
}

// sane returns the text as rules get it.
func sane(e *filter.Engine, exit *int, text string) string {
	return e.Filter("nothing", exit, text).Text
}

func laws(t *testing.T, e, nothing *filter.Engine) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SampledFrom(commands).Draw(t, "command")
		text := drawText(t)
		var exit *int
		if n := rapid.IntRange(-1, 3).Draw(t, "exit"); n >= 0 {
			exit = &n
		}
		out := e.Filter(command, exit, text)
		whole := sane(nothing, exit, text)
		holdsFailures(t, out, exit, whole)
		if len(out.Text) > len(whole) || utf8.RuneCountInString(out.Text) > utf8.RuneCountInString(whole) ||
			out.LinesOut > max(out.LinesIn, 1+strings.Count(whole, "\n")) { // an overwritten failure gets a line of its own
			t.Fatalf("larger than the input:\n%s\n--- from ---\n%s", out.Text, whole)
		}
		if !out.Dropped {
			everyLine(t, out.Text, whole)
		}
		if again := e.Filter(command, exit, text); again.Text != out.Text {
			t.Fatalf("not the same twice")
		}
	})
}

// holdsFailures is the first law.
func holdsFailures(t *rapid.T, out filter.Output, exit *int, whole string) {
	if exit != nil && *exit == 0 {
		return
	}
	left := map[string]bool{}
	for line := range strings.SplitSeq(out.Text, "\n") {
		left[line] = true
		if i := strings.LastIndex(line, " (x"); i > 0 {
			left[line[:i]] = true
		}
	}
	failures := 0
	for line := range strings.SplitSeq(whole, "\n") {
		for _, f := range failing {
			if line == f {
				failures++
				if !left[line] {
					t.Fatalf("%q is hidden in\n%s\n--- from ---\n%s", line, out.Text, whole)
				}
			}
		}
	}
	if !out.Dropped || out.Level <= filter.Fallback {
		return
	}
	low := strings.ToLower(out.Text)
	if failures == 0 && !strings.Contains(low, "the command failed") && !strings.Contains(low, "error") && !strings.Contains(low, "fail") {
		t.Fatalf("it reads as success:\n%s\n--- from ---\n%s", out.Text, whole)
	}
}

// everyLine is the third law: what is said to be whole has every line, blank runs aside.
func everyLine(t *rapid.T, got, whole string) {
	left := map[string]bool{}
	for line := range strings.SplitSeq(got, "\n") {
		left[line] = true
	}
	for line := range strings.SplitSeq(whole, "\n") {
		if strings.TrimSpace(strings.TrimPrefix(line, "[stderr] ")) != "" && !left[line] {
			t.Fatalf("%q was dropped without a report:\n%s", line, got)
		}
	}
}

// TestOverwrittenFailure: a failure that a carriage return has overwritten is shown on a line of its own, so that there
// are more lines than the command printed; nothing is said to be saved then.
func TestOverwrittenFailure(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"cargo test", "nothing"} {
		out := engine(t, filter.Options{}).Filter(command, nil, "×\rA")
		if out.Text != "×\nA" || out.LinesIn != 1 || out.LinesOut != 2 || out.Stats() != "" {
			t.Errorf("%s: %q, %d lines of %d, %q", command, out.Text, out.LinesOut, out.LinesIn, out.Stats())
		}
	}
}

func TestLawsBuiltIn(t *testing.T) {
	t.Parallel()
	laws(t, engine(t, filter.Options{}), engine(t, filter.Options{}))
}

func TestLawsBindUserRules(t *testing.T) {
	t.Parallel()
	rules, problems := load(t, hostile)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	laws(t, engine(t, filter.Options{Rules: rules}), engine(t, filter.Options{}))
}
