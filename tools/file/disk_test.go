package file_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/workspace"
)

// TestAttackFillTheDiskWithFiles: no file tool enlarges a workspace beyond its limit, and what makes it smaller is not
// refused.
func TestAttackFillTheDiskWithFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(b *box, o *file.Options) {
		o.Disk = workspace.NewGuard(workspace.GuardOptions{Root: filepath.Join(b.data, "workspaces"), MaxBytes: 300 << 10})
	})
	b.put("big.txt", strings.Repeat("x", 200<<10))
	b.put("dir/a.txt", strings.Repeat("a", 60<<10))
	for tool, in := range map[string]args{
		"write": {"path": "new.txt", "content": strings.Repeat("y", 200<<10)}, "copy_path": {"source": "big.txt", "destination": "copy.txt"},
		"edit": {"path": "big.txt", "old_string": "x", "new_string": "yy", "replace_all": true},
	} {
		_, err := b.try(tool, in)
		if err == nil {
			t.Fatalf("%s: done", tool)
		}
		if e := tools.AsError(err); e.Category != tools.PolicyBlocked || !strings.Contains(tools.Feedback(e), "300 KiB") || !strings.Contains(tools.Feedback(e), "workspaces.max_bytes") {
			t.Errorf("%s: the model hears %q", tool, tools.Feedback(e))
		}
	}
	for _, step := range []struct {
		tool string
		in   args
	}{
		{"write", args{"path": "big.txt", "content": strings.Repeat("y", 100<<10)}},
		{"delete_path", args{"path": "dir"}},
		{"copy_path", args{"source": "big.txt", "destination": "copy.txt"}},
		{"create_directory", args{"path": "d"}},
		{"move_path", args{"source": "copy.txt", "destination": "d/c"}},
	} {
		if _, err := b.try(step.tool, step.in); err != nil {
			t.Errorf("%s: %v", step.tool, err)
		}
	}
}
