package shell_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// secrets denies to read files of that name, and directories named vault.
func secrets(string) (shell.Unreadable, bool) {
	return shell.Unreadable{Denied: func(path string, dir bool) bool {
		return dir && filepath.Base(path) == "vault" || !dir && filepath.Base(path) == "secret.txt"
	}}, true
}

func (k *kit) put(name, text string) {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func TestBars(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{Unreadable: secrets})
	for _, name := range []string{"secret.txt", "a/b/secret.txt", "vault/x", "open.txt", "a/open"} {
		k.put(name, "x")
	}
	if err := os.Link(filepath.Join(k.dir, "secret.txt"), filepath.Join(k.dir, "a", "other-name")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("secret.txt", filepath.Join(k.dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, complete := k.r.Bars(t.Context(), k.dir)
	want := []string{"a/b/secret.txt", "a/other-name", "secret.txt", "vault"}
	for i, name := range want {
		want[i] = filepath.Join(k.dir, name)
	}
	if diff := cmp.Diff(want, got); diff != "" || !complete {
		t.Errorf("complete %v, bars (-want +got):\n%s", complete, diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 1100 {
		k.put(fmt.Sprintf("many/%d", i), "")
	}
	if _, complete := k.r.Bars(ended, k.dir); complete {
		t.Error("a search that was cut short is complete")
	}
	for i := range 2100 {
		k.put(fmt.Sprintf("many/%d/secret.txt", i+2000), "")
	}
	if _, complete := k.r.Bars(t.Context(), k.dir); complete {
		t.Error("more than can be covered is complete")
	}
	if list, complete := setup(t, shell.Options{}).r.Bars(t.Context(), k.dir); len(list) > 0 || !complete {
		t.Errorf("nothing is denied: %v", list)
	}
}

// TestBarsOfUnreachablePlaces: a place that no command can reach is searched once a minute. A file of the working
// directory that is the same as one that is denied there is covered.
func TestBarsOfUnreachablePlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	k := setup(t, shell.Options{Unreadable: func(dir string) (shell.Unreadable, bool) {
		u, ok := secrets(dir)
		u.Places = []string{home}
		return u, ok
	}})
	if err := os.WriteFile(filepath.Join(home, "secret.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.put("open", "x")
	if err := os.Link(filepath.Join(home, "secret.txt"), filepath.Join(k.dir, "same")); err != nil {
		t.Fatal(err)
	}
	bars := func() []string {
		got, complete := k.r.Bars(t.Context(), k.dir)
		if !complete {
			t.Error("not complete")
		}
		return got
	}
	want := []string{filepath.Join(home, "secret.txt"), filepath.Join(k.dir, "same")}
	slices.Sort(want)
	if diff := cmp.Diff(want, bars()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Mkdir(filepath.Join(home, "vault"), 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, bars()); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	k.put("secret.txt", "x") // where commands work, every search is a new one
	if got := bars(); !slices.Contains(got, filepath.Join(k.dir, "secret.txt")) {
		t.Errorf("in the working directory: %q", got)
	}
}

// BenchmarkBars searches beside homes of many people that no command can reach.
func BenchmarkBars(b *testing.B) {
	home, dir := b.TempDir(), b.TempDir()
	for person := range 100 {
		for i := range 10 {
			sub := filepath.Join(home, fmt.Sprint("person", person), fmt.Sprint("dir", i))
			if err := os.MkdirAll(sub, 0o700); err != nil {
				b.Fatal(err)
			}
			for j := range 100 {
				if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	rules, err := pathrule.New([]string{home + "/*/.ssh/*"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	_, r, err := shell.New(shell.Options{Workspace: func(tools.Origin) (string, error) { return dir, nil }, Unreadable: func(string) (shell.Unreadable, bool) {
		return shell.Unreadable{Places: []string{home}, Denied: func(path string, _ bool) bool {
			_, denied := rules.Denied(path)
			return denied
		}}, true
	}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, complete := r.Bars(b.Context(), dir); !complete {
			b.Fatal("not complete")
		}
	}
}

// TestAttackBarsHold: a file that must not be read is out of reach of a command under any name, and a command that was
// allowed because of that does not run when it is no longer true.
func TestAttackBarsHold(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{Unreadable: secrets, Helper: sandbox.Self})
	if !k.r.Level(t.Context()).Full() {
		k.put("secret.txt", "CANARY")
	} else {
		for _, name := range []string{"secret.txt", "a/b/secret.txt", "vault/x"} {
			k.put(name, "CANARY")
		}
		if err := os.Link(filepath.Join(k.dir, "secret.txt"), filepath.Join(k.dir, "hard")); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{
			"grep -r '' .", "cat secret.txt a/b/* hard vault/*", "mv a c; cat c/b/secret.txt", "ln secret.txt n; cat n", "cp -r . /tmp/x$$ ; cat /tmp/x$$/*",
			"tar cf - . | tr -d '\\0'", "cat /proc/self/root$PWD/secret.txt", "cat /proc/self/cwd/secret.txt", "exec 3<a; cat /dev/fd/3/b/secret.txt",
			"rm -f secret.txt; mv hard h; cat h", "bash -c 'cat <(cat secret.txt)'", "find . -type f -exec cat {} +", "cat SECRET.TXT ./a/../secret.txt",
		} {
			res, _, err := k.call(t.Context(), shell.In{Command: command})
			if err == nil && strings.Contains(res.Text, "CANARY") || err != nil && strings.Contains(tools.Feedback(tools.AsError(err)), "CANARY") {
				t.Errorf("%s: %v %v", command, res, err)
			}
		}
	}
	for i := range 2100 {
		k.put(fmt.Sprintf("many/%d/secret.txt", i), "CANARY")
	}
	call := toolstest.Call(shell.Name, args(t, shell.In{Command: "echo ran"}))
	call.Trail.Bared = true
	if res, err := k.tool.Run(t.Context(), call); err == nil {
		t.Errorf("ran although not everything is covered: %+v", res)
	}
	call.Trail.Bared = false // a person has approved it
	if _, err := k.tool.Run(t.Context(), call); err != nil && !strings.Contains(err.Error(), "unavailable") {
		t.Logf("with many covers: %v", err)
	}
}
