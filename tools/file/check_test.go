package file_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
)

// check asks a tool whether a call could run; "" = it could.
func (b *box) check(name string, in args) string {
	b.t.Helper()
	tool := b.tools[name]
	if tool.Check == nil {
		b.t.Fatalf("%s has no check", name)
	}
	if err := tool.Check(b.t.Context(), b.call(name, in)); err != nil {
		return tools.Feedback(err)
	}
	return ""
}

// TestAttackAskedInVain: a call that the tool will refuse in any case is refused before anybody is asked, and asking
// changes nothing.
func TestAttackAskedInVain(t *testing.T) {
	t.Parallel()
	b := denying(t, "data/workspaces/one/*.key")
	b.put("my.key", "SECRET")
	b.put("a.txt", "text")
	b.put("sub/b.txt", "text")
	b.put("sub/in.key", "SECRET")
	b.link("/etc/passwd", "out")
	for name, from := range map[string]string{"hard.txt": "my.key", "twin.txt": "a.txt"} {
		if err := os.Link(b.path(from), b.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tool string
		in   args
		want string
	}{
		{"read", args{"path": "my.key"}, "may not be read here"},
		{"read", args{"path": "hard.txt"}, "may not be read here"},
		{"edit", args{"path": "my.key", "old_string": "a", "new_string": "b"}, "may not be read here"},
		{"edit", args{"path": "hard.txt", "old_string": "a", "new_string": "b"}, "may not be read here"},
		{"edit", args{"path": "missing.txt", "old_string": "a", "new_string": "b"}, "missing.txt"},
		{"edit", args{"path": "a.txt", "old_string": "a", "new_string": "a"}, "the same"},
		{"edit", args{"path": "a.txt", "old_string": "", "new_string": "a"}, "empty"},
		{"write", args{"path": "sub", "content": "x"}, "is a directory"},
		{"write", args{"path": ".", "content": "x"}, "is a directory"},
		{"write", args{"path": "twin.txt", "content": "x"}, "several names"},
		{"create_directory", args{"path": "a.txt"}, "exists already"},
		{"delete_path", args{"path": "."}, "cannot be deleted"},
		{"delete_path", args{"path": "missing.txt"}, "missing.txt"},
		{"copy_path", args{"source": "my.key", "destination": "open.txt"}, "may not be read here"},
		{"copy_path", args{"source": "hard.txt", "destination": "open.txt"}, "may not be read here"},
		{"copy_path", args{"source": ".", "destination": "other"}, "."},
		{"copy_path", args{"source": "a.txt", "destination": "sub"}, "is a directory"},
		{"copy_path", args{"source": "a.txt", "destination": "twin.txt"}, "several names"},
		{"copy_path", args{"source": "missing.txt", "destination": "b.txt"}, "missing.txt"},
		{"move_path", args{"source": "my.key", "destination": "open.txt"}, "may not be read here"},
		{"move_path", args{"source": "sub", "destination": "open"}, "may not be read here"},
		{"move_path", args{"source": ".", "destination": "sub/x"}, "inside"},
		{"move_path", args{"source": "a.txt", "destination": "a.txt"}, "the same"},
		{"move_path", args{"source": "out", "destination": "sub/out"}, "link that would lead out"},
	} {
		if got := b.check(c.tool, c.in); !strings.Contains(got, c.want) {
			t.Errorf("%s %v: want %q, got %q", c.tool, c.in, c.want, got)
		}
	}
	for tool, in := range map[string]args{
		"read": {"path": "sub/b.txt"}, "edit": {"path": "sub/b.txt", "old_string": "nothing like it", "new_string": "x"}, "write": {"path": "new/deep/c.txt", "content": "x"},
		"create_directory": {"path": "new"}, "delete_path": {"path": "sub"}, "copy_path": {"source": "sub", "destination": "new/sub"},
		"move_path": {"source": "a.txt", "destination": "new/c.txt"},
	} {
		if got := b.check(tool, in); got != "" {
			t.Errorf("%s %v could run: %q", tool, in, got)
		}
	}
	if b.exists("new") || b.exists("open") || b.content("sub/b.txt") != "text" {
		t.Error("a check changed something")
	}
}
