package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/filter"
)

func engine(t testing.TB, o filter.Options) *filter.Engine {
	t.Helper()
	return filter.NewEngine(o)
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// user returns an engine with one rule for the command "x".
func user(t *testing.T, strategy string) *filter.Engine {
	t.Helper()
	rules, problems := load(t, "[[rules]]\nname = \"r\"\nmatch = { prefix = \"x\" }\nstrategy = "+strategy+"\n")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return engine(t, filter.Options{Rules: rules})
}

func TestVectors(t *testing.T) {
	t.Parallel()
	cargo3 := "running 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... ok\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
	cargo1 := "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nthread 'b' panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n\nfailures:\n    b\n\n" +
		"test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
	clippy := "warning: unused variable: `x`\n --> src/a.rs:1:5\n  |\n1 | let x = 1;\n  |     ^\n  = note: `#[warn(unused_variables)]` on by default\n\n" +
		"warning: unused variable: `y`\n --> src/a.rs:7:5\n  |\n  = note: `#[warn(unused_variables)]` on by default\n\n" +
		"warning: needless return\n --> src/b.rs:3:1\n  |\n  = note: `#[warn(needless_return)]` on by default\n\n"
	diff := "diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-one\n+two\n+three\n four\ndiff --git a/y b/y\nindex 3333333..4444444 100644\n--- a/y\n+++ b/y\n@@ -1 +1,2 @@\n a\n+b\n"
	push := "Enumerating objects: 5, done.\nCounting objects: 100% (5/5), done.\nTo github.com:a/b.git\n   1111111..2222222  main -> main\n"
	for _, tc := range []struct {
		name, command string
		exit          *int
		text          string
		has, hasNot   []string
		level         filter.Confidence
	}{
		{"truncate marks", "make", new(0), numbered(100), []string{"(70 lines omitted)", "line 15\n", "line 86\n"}, []string{"line 16\n"}, filter.Partial},
		{"push", "git push", new(0), push, []string{"To github.com", "main -> main"}, []string{"Enumerating"}, filter.Full},
		{"three pass", "cargo test", new(0), cargo3, []string{"3 passed; 0 failed"}, []string{"test a", "running"}, filter.Full},
		{"one fails", "cargo test", new(101), cargo1, []string{"assertion `left == right` failed", "  left: 1", "1 failed", "test b ... FAILED"}, []string{"test a"}, filter.Full},
		{"random text", "cargo test", new(0), "hello\nworld\n", []string{"hello\nworld"}, nil, filter.Fallback},
		{"clippy", "cargo clippy", new(0), clippy, []string{"unused_variables (2 warnings):", "needless_return (1 warning):", "3 warnings total (2 rules)", "src/b.rs:3"}, nil, filter.Full},
		{"clippy error", "cargo clippy", new(101), "error[E0308]: mismatched types\n --> src/a.rs:1:5\n\n" + clippy, []string{"error[E0308]", "needless return"}, []string{"total"}, filter.Fallback},
		{"nothing to commit", "git status", new(0), "nothing to commit, working tree clean\n", []string{"nothing to commit"}, nil, filter.Fallback},
		{"diff", "git diff", new(0), diff, []string{"diff --git a/x b/x", "@@ -1,2 +1,3 @@", "+three", "2 files changed, 3 insertions(+), 1 deletions(-)"}, []string{"index 111"}, filter.Full},
		{"annotated fails", "cargo build", new(1), "no noise here\n", []string{"no noise here"}, nil, filter.Fallback},
		{"no rule", "frobnicate", new(0), "a\n\n\nb\n", []string{"a\n\n\nb"}, nil, filter.None},
		{"pipe and cd", "cd x && go test ./... 2>&1 | tail -80", new(0), "ok  \ta/b\t0.1s\nok  \ta/c\t0.1s\n", []string{"ok: 2 packages"}, []string{"a/b"}, filter.Full},
		{"semicolon", "cd a; cargo test", new(0), cargo3, []string{"3 passed"}, []string{"test a"}, filter.Full},
		{"mixed", "git log; cat notes", new(0), numbered(100), []string{"line 50\n"}, []string{"omitted"}, filter.None},
		{"dedup", "docker logs x", new(0), "2026-01-01T00:00:01Z up\n2026-01-01T00:00:02Z up\n2026-01-01T00:00:03Z up\n2026-01-01T00:00:04Z down\n2026-01-01T00:00:05Z up\n", []string{"01Z up (x3)\n", "04Z down\n2026-01-01T00:00:05Z up"}, nil, filter.Full},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out := engine(t, filter.Options{}).Filter(tc.command, tc.exit, tc.text)
			for _, want := range tc.has {
				if !strings.Contains(out.Text, want) {
					t.Errorf("%q is missing in\n%s", want, out.Text)
				}
			}
			for _, not := range tc.hasNot {
				if strings.Contains(out.Text, not) {
					t.Errorf("%q is in\n%s", not, out.Text)
				}
			}
			if out.Level != tc.level {
				t.Errorf("level %s, want %s; rules %v", out.Level, tc.level, out.Rules)
			}
		})
	}
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	e := user(t, `{ type = "strip_noise", patterns = ["^never$"] }`)
	for in, want := range map[string]string{
		"\x1b[32mOK\x1b[0m t":            "OK t",
		"50%\r100%":                      "100%",
		"a\r\nb\r\n":                     "a\nb",
		"a\n\n\n\nb":                     "a\n\nb",
		"\x1b]0;title\x07text":           "text",
		"\x1b]8;;http://x\x1b\\l\x1b]8;": "l8;",
		"a\x1b]never ended\nerror: b":    "anever ended\nerror: b",
		"\x1bPq#0\x1b\\x":                "x",
		"\x1b(Bx\x1b7y\x1b[1;31":         "xy1;31",
		"[stderr] 1%\r2%":                "[stderr] 2%",
		"[stderr] \x1b[31mred\x1b[0m":    "[stderr] red",
		"end\x1b":                        "end",
	} {
		if got := e.Filter("x", new(0), in); got.Text != want {
			t.Errorf("%q: %q, want %q", in, got.Text, want)
		}
	}
	long := "\x1b]0;" + strings.Repeat("a", 10000) + "\x07"
	if got := e.Filter("x", new(0), long).Text; !strings.Contains(got, "aaaa") {
		t.Error("a sequence without a near end hid text")
	}
	if got := e.Filter("x", new(1), "error: boom\rok").Text; got != "error: boom\nok" {
		t.Errorf("an overwritten failure: %q", got)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	for command, want := range map[string]string{
		"go test ./...": "go-test", "cd x && go test ./... 2>&1 | tail -80": "go-test", "FOO=1 go test": "go-test", "env A=b go test": "go-test",
		"time go test": "go-test", "timeout 60 go test": "go-test", "nice -n 5 go test": "go-test", "sudo -u x go test": "go-test", "/usr/local/go/bin/go test": "go-test",
		"bash -c 'cd y; go test'": "go-test", "set -e\ncd x\ngo test ./...": "go-test", "go -C x test": "go-test", "go test > out.txt": "", "go test ./... | wc -l": "",
		"python -m pytest -q": "pytest", "python3 -m pytest": "pytest", "poetry run pytest": "pytest", "uv run -p 3.12 pytest": "pytest", "npx jest": "js-test",
		"npx --yes jest --ci": "js-test", "yarn jest": "js-test", "./node_modules/.bin/jest": "js-test", "npm test": "js-test", "npm run test:unit": "js-test",
		"git -C x status": "git-status", "git --no-pager log -5": "git-log", "cargo +nightly test": "cargo-test", "docker compose -f a.yml up -d": "docker-compose",
		"kubectl -n prod get pods": "kubectl-get", "git diff a; git diff b": "git-diff", "git diff; ls": "", "go test || true": "go-test", "go test; echo $?": "go-test",
		"(cd x && go test)": "go-test", "if true; then go test; fi": "go-test", "for p in a b; do go test ./$p; done": "go-test", "go test |& tail": "go-test",
		"go test | grep -v ok": "go-test", "go test | awk '{print}'": "", "cat a.log": "log-dedup", "echo hi": "", "": "", "((((": "", "go test &&": "",
		"golang test": "", "gitstatus": "",
	} {
		out := e.Filter(command, new(0), "x\n")
		if want == "" && len(out.Rules) > 0 || want != "" && !slices.Contains(out.Rules, want) {
			t.Errorf("%q: rules %v, want %q", command, out.Rules, want)
		}
	}
}
