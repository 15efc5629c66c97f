package file_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
)

// TestDeeds: each tool that changes files says what its call would do, and changes nothing by saying it.
func TestDeeds(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("notes.md", "one\ntwo\n")
	b.put("dir/x", "x")
	for _, c := range []struct {
		tool string
		in   args
		want tools.Effect
	}{
		{"write", args{"path": "new/a.txt", "content": "a\nb\n"}, tools.Effect{
			Created: []tools.FileEffect{{Path: "new/a.txt", Added: 2, Bytes: 4}}, Diff: "--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n",
		}},
		{"write", args{"path": "notes.md", "content": "one\nTWO\n"}, tools.Effect{
			Changed: []tools.FileEffect{{Path: "notes.md", Added: 1, Removed: 1, Bytes: 8}}, Diff: "--- a/notes.md\n+++ b/notes.md\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n",
		}},
		{"write", args{"path": "notes.md", "content": "one\ntwo\n"}, tools.Effect{}},
		{"edit", args{"path": "notes.md", "old_string": "two\n", "new_string": ""}, tools.Effect{
			Changed: []tools.FileEffect{{Path: "notes.md", Removed: 1, Bytes: 4}}, Diff: "--- a/notes.md\n+++ b/notes.md\n@@ -1,2 +1 @@\n one\n-two\n",
		}},
		{"delete_path", args{"path": "dir"}, tools.Effect{Deleted: []string{"dir/"}}},
		{"delete_path", args{"path": "notes.md"}, tools.Effect{Deleted: []string{"notes.md"}}},
		{"move_path", args{"source": "dir", "destination": "old"}, tools.Effect{Moved: []tools.MoveEffect{{From: "dir/", To: "old"}}}},
		{"copy_path", args{"source": "notes.md", "destination": "b"}, tools.Effect{Copied: []tools.MoveEffect{{From: "notes.md", To: "b"}}}},
		{"create_directory", args{"path": "made/deep"}, tools.Effect{Created: []tools.FileEffect{{Path: "made/deep/"}}}},
		{"create_directory", args{"path": "dir"}, tools.Effect{}},
	} {
		tool := b.tools[c.tool]
		got, err := tool.SafeDeed(t.Context(), b.call(c.tool, c.in))
		if err != nil {
			t.Fatalf("%s: %v", c.tool, err)
		}
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.tool, c.in, diff)
		}
	}
	if b.content("notes.md") != "one\ntwo\n" || b.content("dir/x") != "x" {
		t.Error("something has changed")
	}
}
