package file_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
)

// remove deletes what is in the workspace.
func (b *box) remove(name string) {
	b.t.Helper()
	if err := os.RemoveAll(b.path(name)); err != nil {
		b.t.Fatal(err)
	}
}

// TestAttackChangedAfterApproval: a call that a person has approved does nothing if something else is at its paths than what
// that person saw: another content, nothing, something, a link, another file in a directory.
func TestAttackChangedAfterApproval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool   string
		in     args
		change func(b *box)
	}{
		"edit, another line":         {"edit", args{"path": "a", "old_string": "one", "new_string": "ONE"}, func(b *box) { b.put("a", "one\nTWO\n") }},
		"edit, the same length":      {"edit", args{"path": "a", "old_string": "one", "new_string": "ONE"}, func(b *box) { b.put("a", "one\ntoo\n") }},
		"write over another content": {"write", args{"path": "a", "content": "x"}, func(b *box) { b.put("a", "two") }},
		"write over what is no text": {"write", args{"path": "bin", "content": "x"}, func(b *box) { b.put("bin", "\xff\x01") }},
		"write where nothing was":    {"write", args{"path": "new", "content": "x"}, func(b *box) { b.put("new", "theirs") }},
		"write where it is gone":     {"write", args{"path": "a", "content": "x"}, func(b *box) { b.remove("a") }},
		"delete another content":     {"delete_path", args{"path": "a"}, func(b *box) { b.put("a", "two") }},
		"delete with one more":       {"delete_path", args{"path": "dir"}, func(b *box) { b.put("dir/deep/more", "x") }},
		"delete with one changed":    {"delete_path", args{"path": "dir"}, func(b *box) { b.put("dir/deep/x", "y") }},
		"delete a file, now a directory": {"delete_path", args{"path": "a"}, func(b *box) {
			b.remove("a")
			b.put("a/x", "x")
		}},
		"delete a link": {"delete_path", args{"path": "link"}, func(b *box) {
			b.remove("link")
			b.link("dir", "link")
		}},
		"move another content":         {"move_path", args{"source": "a", "destination": "c"}, func(b *box) { b.put("a", "two") }},
		"move over what was not there": {"move_path", args{"source": "a", "destination": "c"}, func(b *box) { b.put("c", "theirs") }},
		"move over another content":    {"move_path", args{"source": "a", "destination": "bin"}, func(b *box) { b.put("bin", "\xfe") }},
		"move a directory":             {"move_path", args{"source": "dir", "destination": "c"}, func(b *box) { b.put("dir/new", "") }},
		"copy another content":         {"copy_path", args{"source": "a", "destination": "c"}, func(b *box) { b.put("a", "two") }},
		"copy over another content":    {"copy_path", args{"source": "a", "destination": "bin"}, func(b *box) { b.put("bin", "\xfe") }},
		"make what is there":           {"create_directory", args{"path": "made"}, func(b *box) { b.put("made/theirs", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, changed := range []bool{false, true} {
				b := newBox(t, nil)
				b.put("a", "one\ntwo\n")
				b.put("bin", "\xff\x00")
				b.put("dir/deep/x", "x")
				b.link("a", "link")
				tool, call := b.tools[c.tool], b.call(c.tool, c.in)
				shown, err := tool.SafeState(t.Context(), call)
				if err != nil || len(shown) == 0 {
					t.Fatalf("%+v, %v", shown, err)
				}
				call.Shown = shown
				if changed {
					c.change(b)
				}
				_, err = tool.Run(t.Context(), call)
				switch {
				case !changed && err != nil:
					t.Errorf("as shown: %v", err)
				case changed && (err == nil || !tools.AsError(err).Denied() || !strings.Contains(err.Error(), "nothing was done")):
					t.Errorf("changed: %v", err)
				}
			}
		})
	}
}

// TestLeft: what a call leaves is what the next one finds.
func TestLeft(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("a", "one\ntwo\n")
	var last string
	for i, c := range []struct {
		tool string
		in   args
	}{
		{"edit", args{"path": "a", "old_string": "one", "new_string": "ONE"}},
		{"write", args{"path": "a", "content": "x\n"}},
		{"edit", args{"path": "a", "old_string": "x", "new_string": "y"}},
	} {
		tool, call := b.tools[c.tool], b.call(c.tool, c.in)
		found, err := tool.SafeState(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tool.Run(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		left := call.Trail.Left
		if len(left) != 1 || left[0].Before != found[0].Before || left[0].Path != found[0].Path || i > 0 && left[0].Before != last {
			t.Fatalf("%d: %+v, found %+v, before %q", i, left, found, last)
		}
		last = left[0].After
	}
}
