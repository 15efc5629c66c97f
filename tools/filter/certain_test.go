package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/tools/filter"
)

// sure are lines that tell of a failure whatever the exit code is, and whatever command printed them.
var sure = []string{
	"error: could not compile `x`", "error[E0308]: mismatched types", "--- FAIL: TestA (0.00s)", "FAIL\texample.com/a\t0.1s", "panic: runtime error: index out of range",
	"npm ERR! code ELIFECYCLE", "npm error code E404", "Traceback (most recent call last):", "AssertionError: expected 1", "fatal: not a git repository",
	"make: *** [all] Error 2", "make: [Makefile:9: docs] Error 1 (ignored)", "make[1]: *** [Makefile:3: a.o] Error 1", "bash: foo: command not found",
	"not ok 3 - adds", "thread 'main' panicked at src/main.rs:2:5:", "test b ... FAILED", "FAILED tests/test_a.py::test_b - assert 1 == 2", "Killed",
	"Segmentation fault (core dumped)", "E: Unable to locate package x", "ERROR: failed to solve: process", "[ERROR] COMPILATION ERROR", "Permission denied",
	"Error from server (NotFound): pods \"x\" not found", "│ Error: Invalid reference", "ssh: connect to host x port 22: Connection refused",
	" ! [remote rejected] main -> main (pre-receive hook declined)", "remote: error: hook declined to update refs/heads/main", "1 failed, 2 passed in 0.1s",
	"[stderr] error: boom", "a.c:(.text+0x5): undefined reference to `f'", "src/a.ts(3,7): error TS2322: Type 'x'",
}

// pods are rows of tables of a cluster in which something is wrong.
var pods = []string{
	"web-1   0/1   CrashLoopBackOff   12 (2m ago)   30m", "web-2   0/1     ImagePullBackOff   0               1d", "web-3   0/1     ErrImagePull       0     1d",
	"web-4   0/1     OOMKilled          3               1d", "web-5   0/1     Pending            0               1d", "web-6   0/1     Error              0     1d",
	"web-7   1/2     Running            0               1d", "web-8   0/1     Init:CrashLoopBackOff   7     1d", "web-9   0/1     Evicted   0     1d",
	"node-1   NotReady   <none>   3d   v1.30.1", "web-10   0/1     CreateContainerConfigError   0     1d", "api   1/3     3            1           9d",
	"job-1   0/1     Unknown   0     1d", "job-2   0/1     Terminating   0     1d",
}

func survives(t interface{ Fatalf(string, ...any) }, out filter.Output, line string) {
	for got := range strings.SplitSeq(out.Text, "\n") {
		if got == line || strings.HasPrefix(got, line+" (x") {
			return
		}
	}
	t.Fatalf("%q is hidden in\n%s", line, out.Text)
}

// TestFailuresOfSuccess: exit code 0 hides no failure either. One bad line among many good ones is kept for every
// command that speaks, and nothing that the filter itself writes next to it looks like success.
func TestFailuresOfSuccess(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	good := map[string]string{
		"kubectl get pods -A": "shop-db-%d-npfpn   1/1     Running            0               1d", "make -k": "gcc -Wall -c -o f%d.o f%[1]d.c",
		"git push": " * [new tag]         v%d -> v%[1]d", "cargo test": "test a%d ... ok", "go test ./...": "ok  \texample.com/p%d\t0.1s",
		"npm run build": "built module number %d", "npm install": "npm warn deprecated p%d: old", "docker ps": "web%d   Up 3 hours   80/tcp",
		"pytest": "tests/test_a.py::test_%d PASSED [ 50%%]", "terraform apply": "a.b%d: Refreshing state...", "docker logs x": "2026-01-01T00:00:01Z served %d",
		"eslint .": "checked %d", "cargo build": "   Compiling a%d v1.0.0", "apt-get install x": "Get:%d http://a b",
	}
	for command, form := range good {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, form+"\n", i)
		}
		bad := sure
		if strings.HasPrefix(command, "kubectl") {
			bad = append(append([]string{}, sure...), pods...)
		}
		for _, line := range bad {
			out := e.Filter(command, new(0), b.String()+line+"\n"+b.String())
			survives(t, out, line)
			for _, told := range []string{"\nok: ", "test result: ok"} {
				if strings.Contains("\n"+out.Text, told) {
					t.Errorf("%s: %q occurs next to %q:\n%s", command, told, line, out.Text)
				}
			}
		}
	}
}

// TestSureLaw tests the first law for exit code 0, with any surrounding lines and for every strategy.
func TestSureLaw(t *testing.T) {
	t.Parallel()
	rules, problems := load(t, hostile)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	built, user := engine(t, filter.Options{}), engine(t, filter.Options{Rules: rules})
	speaking := []string{}
	for _, c := range commands {
		if c != "ls" && !strings.HasPrefix(c, "find") && !strings.HasPrefix(c, "grep") && !strings.HasPrefix(c, "git diff") && c != "git log" && c != "ls -R" && !strings.HasPrefix(c, "tar") {
			speaking = append(speaking, c)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SampledFrom(speaking).Draw(t, "command")
		lines := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(harmless), rapid.SampledFrom(harmless), rapid.SampledFrom(harmless), rapid.SampledFrom(sure)), 0, 150).Draw(t, "lines")
		for _, e := range []*filter.Engine{built, user} {
			out := e.Filter(command, new(0), strings.Join(lines, "\n"))
			for _, l := range lines {
				for _, s := range sure {
					if l == s {
						survives(t, out, l)
					}
				}
			}
		}
	})
}

// TestSearchesThatFail: files listed by find, ls and grep may be called error; complaints of the programs themselves
// are kept.
func TestSearchesThatFail(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "./src/errors/fail_%d.go\n", i)
	}
	for command, line := range map[string]string{
		"find . || true": "find: ‘./secret’: Permission denied", "grep -r x . | cat": "grep: secret: Permission denied", "ls -R; true": "ls: cannot open directory 'secret': Permission denied",
		"find .": "[stderr] find: ‘./secret’: Permission denied", "tree": "tree: x: No such file or directory",
	} {
		out := e.Filter(command, new(0), b.String()+line+"\n"+b.String())
		survives(t, out, line)
		if len(out.Text)*4 > b.Len()*2 {
			t.Errorf("%s: %d characters of %d", command, len(out.Text), 2*b.Len())
		}
	}
}

// TestRefusedPush: what the remote says about a push that it refused is kept, with and without a word of failure. Its
// progress is dropped.
func TestRefusedPush(t *testing.T) {
	t.Parallel()
	text := "remote: Enumerating objects: 5, done.\nremote: Counting objects: 100% (5/5), done.\nWriting objects: 100% (3/3), 300 bytes, done.\n" +
		"remote: Please name a ticket in the subject of 1a2b3c\nremote: See https://wiki.example.com/commits\nTo example.com:a.git\n ! [remote rejected] main -> main (pre-receive hook declined)\n"
	for _, command := range []string{"git push", "git push || true", "git push 2>&1 | tail -20"} {
		for _, exit := range []int{0, 1} {
			out := engine(t, filter.Options{}).Filter(command, &exit, text)
			survives(t, out, "remote: Please name a ticket in the subject of 1a2b3c")
			survives(t, out, "remote: See https://wiki.example.com/commits")
			survives(t, out, " ! [remote rejected] main -> main (pre-receive hook declined)")
			if strings.Contains(out.Text, "Counting") {
				t.Errorf("progress stays:\n%s", out.Text)
			}
		}
	}
}

// TestBlankRuns: a rule collapses runs of blank lines. Unknown output, and a diff, whose blank lines are lines of a
// file, keep theirs.
func TestBlankRuns(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	for command, want := range map[string]string{
		"make": "a\n\nb", "npm test": "a\n\nb", "cat x.py": "a\n\n\n\nb\n\n", "git show HEAD:x.py": "a\n\n\n\nb", "git diff": "a\n\n\n\nb", "./run": "a\n\n\n\nb\n\n",
	} {
		if out := e.Filter(command, new(0), "a\n\n\n\nb\n\n"); out.Text != want {
			t.Errorf("%s: %q, want %q", command, out.Text, want)
		}
	}
}
