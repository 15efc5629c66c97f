package ignore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/file/ignore"
)

// tree has the lists of its directories, read once.
type tree struct {
	files map[string]string
	lists map[string]*ignore.List
}

func (t *tree) list(dir string) *ignore.List {
	if l, ok := t.lists[dir]; ok {
		return l
	}
	var above *ignore.List
	if dir != "" {
		above = t.list(strings.TrimPrefix(path.Dir("/"+dir), "/"))
	}
	l := above.Below(dir, []byte(t.files[path.Join(dir, ".gitignore")]))
	t.lists[dir] = l
	return l
}

// ignored walks down the path like a walk of a tree: everything in an ignored directory is ignored.
func (t *tree) ignored(name string, isDir bool) bool {
	parts := strings.Split(name, "/")
	for i := range parts {
		if t.list(path.Join(parts[:i]...)).Ignored(path.Join(parts[:i+1]...), isDir || i < len(parts)-1) {
			return true
		}
	}
	return false
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		lines, yes, no string // paths separated by spaces; a directory ends in /
	}{
		{"# note\n\n*.log", "a.log d/a.log", "a.txt"},
		{"/a", "a a/", "d/a"},
		{"a/", "a/ d/a/ a/x", "a"},
		{"d/a", "d/a", "x/d/a"},
		{"*.log\n!keep.log", "a.log", "keep.log d/keep.log"},
		{"build/\n!build/keep", "build/keep build/", "keep"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "b x/a/b"},
		{"**/b", "b a/b x/y/b", "bb"},
		{"a/**", "a/b a/b/c", "a a/"},
		{"a**b", "ab axb", "a/b"},
		{"a/*", "a/b", "b"},
		{"a/*/c", "a/b/c", "a/b/b/c a/c"},
		{"[a-c].txt\n[!a-c].go", "a.txt d.go", "d.txt a.go"},
		{"[[:digit:]]x", "1x", "ax"},
		{"?.c", "a.c", "ab.c é.c"},
		{`\#x`, "#x", "x"},
		{`\!x`, "!x", "x"},
		{"x  ", "x", "y"},
		{`x\ `, "", "x"},
		{"{a,b}", "{a,b}", "a b"},
		{"[a", "", "[a a"},
		{"a[/]b", "", "a/b"},
		{"x\r\ny\r\n", "x y", "z"},
		{"\xef\xbb\xbfx", "x", "y"},
		{"*\n!*/\n!*.go", "a.txt d/a.txt", "d/ a.go d/a.go"},
		{"a//", "", "a a/"},
	} {
		files := &tree{map[string]string{".gitignore": tc.lines}, map[string]*ignore.List{}}
		for _, want := range []bool{true, false} {
			list := tc.no
			if want {
				list = tc.yes
			}
			for name := range strings.FieldsSeq(list) {
				if got := files.ignored(strings.TrimSuffix(name, "/"), strings.HasSuffix(name, "/")); got != want {
					t.Errorf("%q: %s is ignored: %t, want %t", tc.lines, name, got, want)
				}
			}
		}
	}
}

func TestNested(t *testing.T) {
	t.Parallel()
	files := &tree{map[string]string{".gitignore": "*.log\n/top\n", "d/.gitignore": "!keep.log\n/only\n", "d/e/.gitignore": "keep.log\n"}, map[string]*ignore.List{}}
	for name, want := range map[string]bool{
		"a.log": true, "keep.log": true, "d/a.log": true, "d/keep.log": false, "d/e/keep.log": true,
		"top": true, "d/top": false, "d/only": true, "only": false, "d/e/only": false,
	} {
		if got := files.ignored(name, false); got != want {
			t.Errorf("%s is ignored: %t, want %t", name, got, want)
		}
	}
}

// TestGit compares with git itself, where there is one.
func TestGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here")
	}
	files := map[string]string{
		".gitignore": strings.Join([]string{
			"# comment", "*.log", "!keep.log", "/only-top", "build/", "doc/*.txt", "a/**/z", "**/deep", "tail/**", "x**y", "[a-c]1", "[!a-c]2", "[^x]3", `\#hash`, `\!bang`, "sp ",
			`sp2\ `, "[[:upper:]]U", "[]]4", "[a-]5", "{p,q}", "?6", `q\*`, "[", "a[/]b", "*/mid/*", "/*.top", "foo//", "/", "!", "!/", "**", "!**/", "!*.*", "!only", "!*[0-9]", "!deep", "vendor", "[\\]]7", "[z-a]8", "***9", "/**/w", "m/**n", "[[:nope:]]x", `end\`,
		}, "\n"),
		"d/.gitignore": "!a.log\n/local\nsub/\n*.tmp\n!sub/\n", "d/e/.gitignore": "!*.tmp\nkeep.log\r\n", "tail/.gitignore": "!k\n",
	}
	base := []string{
		"a.log", "keep.log", "only-top", "build", "x.txt", "z", "deep", "xy", "xaby", "a1", "d1", "a2", "e2", "x3", "y3", "#hash", "!bang", "sp", "sp2 ", "AU", "]4", "-5", "a5", "{p,q}", "p", "66", "é6", "q*", "qa",
		"[", "b", "t.top", "foo", "local", "sub", "n.tmp", "only", "plain", "]7", "a8", "9", "w", "mn", "k", "mid", "vendor", "end",
	}
	var names []string
	for _, d := range []string{"", "d/", "d/e/", "a/", "a/m/", "doc/", "tail/", "m/", "x/mid/"} {
		for _, b := range base {
			names = append(names, d+b)
		}
	}
	// Without the lines that ignore everything, so that something is left to be decided.
	for _, drop := range []string{"", "**", "/"} {
		top := slices.DeleteFunc(strings.Split(files[".gitignore"], "\n"), func(l string) bool { return drop != "" && l == drop })
		set := map[string]string{".gitignore": strings.Join(top, "\n"), "d/.gitignore": files["d/.gitignore"], "d/e/.gitignore": files["d/e/.gitignore"], "tail/.gitignore": files["tail/.gitignore"]}
		want := byGit(t, git, set, names)
		ours := &tree{set, map[string]*ignore.List{}}
		var got []string
		for _, n := range names {
			if ours.ignored(n, false) {
				got = append(got, n)
			}
		}
		if drop == "**" && (len(want) < len(names)/20 || len(want) > len(names)*19/20) {
			t.Errorf("git ignores %d of %d: the test says nothing", len(want), len(names))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without %q (-git +ours):\n%s", drop, diff)
		}
	}
}

// byGit asks git which of the names are ignored; none of them is a directory.
func byGit(t *testing.T, git string, files map[string]string, names []string) []string {
	t.Helper()
	dir := t.TempDir()
	run := func(stdin string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
			t.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	run("", "init", "-q")
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := run(strings.Join(names, "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
	var list []string
	for n := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		list = append(list, string(n))
	}
	return list
}

func FuzzIgnored(f *testing.F) {
	f.Add("*.log\n!a/**/[b-\n\\", "a/b.log")
	f.Add("[[:digit:]-a]\\ \n**/**/**", "\xff/x")
	f.Fuzz(func(t *testing.T, lines, name string) {
		l := (*ignore.List)(nil).Below("", []byte(lines))
		if got := l.Ignored(name, true); got != l.Ignored(name, true) {
			t.Error("not the same twice")
		}
		if l = l.Below("d", []byte(fmt.Sprintf("/%s", "sure"))); !l.Ignored("d/sure", false) {
			t.Error("a plain pattern does not match")
		}
	})
}
