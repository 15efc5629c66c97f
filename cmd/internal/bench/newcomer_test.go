package bench_test

import (
	"bufio"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// judgedNewcomers asks about this repository what somebody who is new to it would ask (testdata/search/newcomer.txt).
// Searched is the whole checkout, with its tests and documentation.
func judgedNewcomers(t *testing.T, half string) []judged {
	t.Helper()
	dir := topOfRepository(t)
	if dir == "" {
		return nil
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = dir
	out, err := list.Output()
	check(t, err)
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) || strings.Contains(name, "testdata/") {
			continue // removed and not committed; data of tests
		}
		check(t, err)
		to := filepath.Join(root, name)
		check(t, cmp.Or(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o600)))
	}
	c := judged{language: "newcomer", name: "this repository", root: root}
	f, err := os.Open("testdata/search/newcomer.txt")
	check(t, err)
	defer func() { check(t, f.Close()) }()
	for s := bufio.NewScanner(f); s.Scan(); {
		text, files, ok := strings.Cut(s.Text(), " -> ")
		if !ok || strings.HasPrefix(text, "#") || !inHalf(half, text) {
			continue
		}
		q := question{text: text, files: strings.Split(files, " or ")}
		for _, name := range q.files {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		c.questions = append(c.questions, q)
	}
	return []judged{c}
}

// topOfRepository returns the directory of this checkout; "" = it is no repository.
func topOfRepository(t *testing.T) string {
	t.Helper()
	top, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Logf("no repository: %v", err)
		return ""
	}
	return strings.TrimSpace(string(top))
}
