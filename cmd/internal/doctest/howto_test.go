package doctest_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/doctest"
)

const root = "../../.."

// TestHowto makes every change of docs/howto.md on one copy of the repository, as a reader would, and runs its commands
// there. What each package is asked for is asked at once, after all changes, so that it is built once; the build cache is
// shared, so only what the changes touch is built.
func TestHowto(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and tests a copy of the repository")
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "howto.md"))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := doctest.Changes(string(page))
	if err != nil {
		t.Fatalf("docs/howto.md: %v", err)
	}
	dir := t.TempDir()
	copyProject(t, dir)
	commands := 0
	for _, c := range changes {
		if err := c.Apply(dir); err != nil {
			t.Errorf("docs/howto.md:%d: %v", c.Line, err)
		}
		if c.Command != "" {
			commands++
		}
	}
	if commands < 8 {
		t.Errorf("the page has %d commands", commands)
	}
	for _, c := range doctest.Join(changes) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.Command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("docs/howto.md:%d: %s: %v\n%s", c.Line, c.Command, err, out[max(0, len(out)-4000):])
		}
		for _, name := range c.Tests {
			if !bytes.Contains(out, []byte("=== RUN   "+name)) {
				t.Errorf("docs/howto.md:%d: %s: no test begins with %s", c.Line, c.Command, name)
			}
		}
	}
}

// TestHowtoIsFormatted: who copies the page has nothing to format.
func TestHowtoIsFormatted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "howto.md"))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := doctest.Changes(string(page))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyProject(t, dir)
	for _, c := range changes {
		if err := c.Apply(dir); err != nil {
			t.Errorf("docs/howto.md:%d: %v", c.Line, err)
		}
	}
	formatted := 0
	for _, c := range changes {
		if !strings.HasSuffix(c.File(), ".go") {
			continue
		}
		formatted++
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(c.File())))
		if err != nil {
			t.Fatal(err)
		}
		want, err := format.Source(raw)
		if err != nil {
			t.Errorf("docs/howto.md:%d: %s: %v", c.Line, c.File(), err)
		} else if diff := gocmp.Diff(string(want), string(raw)); diff != "" {
			t.Errorf("docs/howto.md:%d: %s is not formatted: %s", c.Line, c.File(), diff)
		}
	}
	if formatted < 8 {
		t.Errorf("%d changes of Go", formatted)
	}
}

// TestJoin: commands that test the same packages become one, and nothing of what they ask for is lost.
func TestJoin(t *testing.T) {
	t.Parallel()
	var list []doctest.Change
	for i, command := range []string{
		"go test ./a", "go test ./b -run 'TestX|TestY/part'", "A=1 go test ./c -run TestDoc", "go run ./cmd/a list",
		"go test ./a", "go test ./b -run TestZ", "A=1 go test ./c -run TestDoc", "go test ./c -run TestDoc", "go test ./b ./c",
	} {
		list = append(list, doctest.Change{Line: i + 1, Command: command})
	}
	var got []string
	for _, c := range doctest.Join(append(list, doctest.Change{Line: 20})) {
		got = append(got, fmt.Sprintf("%d %s %q", c.Line, c.Command, c.Tests))
	}
	want := []string{
		`1 go test ./a []`, `2 go test ./b -v -run 'TestX|TestY/part|TestZ' ["TestX" "TestY" "TestZ"]`, `3 A=1 go test ./c -v -run 'TestDoc' ["TestDoc"]`,
		`4 go run ./cmd/a list []`, `8 go test ./c -v -run 'TestDoc' ["TestDoc"]`, `9 go test ./b ./c []`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// copyProject copies the files that belong to the project to a directory: what git tracks, and what it would.
func copyProject(t *testing.T, dir string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("git does not list the files of the project: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		info, statErr := os.Stat(filepath.Join(root, name))
		path := filepath.Join(dir, name)
		if err := cmp.Or(err, statErr, os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChanges: what a page asks for is understood, and what cannot be done is said.
func TestChanges(t *testing.T) {
	t.Parallel()
	page := strings.ReplaceAll(`# How to

New file 'a/x.txt':

'''text
one
three
'''

Some words. In 'a/x.txt', below the line with 'one':

'''text
two
'''

In 'a/x.txt', above the line with 'one':

'''text
zero
'''

1. Copy 'a/x.txt' to 'y.txt'.

An example that is no change:

'''text
nothing
'''

'''sh
go version
go env
'''
`, "'", "`")
	changes, err := doctest.Changes(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var commands []string
	for _, c := range changes {
		if err := c.Apply(dir); err != nil {
			t.Errorf("line %d: %v", c.Line, err)
		}
		if c.Command != "" {
			commands = append(commands, c.Command)
		}
	}
	for _, name := range []string{"a/x.txt", "y.txt"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != "zero\none\ntwo\nthree\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got := strings.Join(commands, "; "); got != "go version; go env" {
		t.Errorf("commands: %s", got)
	}
	for bad, want := range map[string]string{
		"New file 'a/x.txt':\n\n'''\nx\n'''\n":                            "exists",
		"In 'a/x.txt', below the line with 'four':\n\n'''\nx\n'''\n":      "no line",
		"In 'a/none.txt', below the line with 'four':\n\n'''\nx\n'''\n":   "no such file",
		"Copy 'none.txt' to 'z.txt'.\n":                                   "no such file",
		"In 'a/x.txt', below the line with 'four':\n\nno block follows\n": "no block",
	} {
		changes, err := doctest.Changes(strings.ReplaceAll(bad, "'", "`"))
		for _, c := range changes {
			err = cmp.Or(err, c.Apply(dir))
		}
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
}
