package file_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools"
)

// TestPartOfIt: a directory that can be deleted in part is not told as one that could not.
func TestPartOfIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs files of several owners")
	}
	b := newBox(t, nil)
	b.put("dir/a", "mine")
	b.put("dir/b/c", "of root")
	for _, name := range []string{"", "dir", "dir/a"} {
		if err := os.Chown(b.path(name), nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(b.path("dir/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	whole := b.path("dir/b")
	for dir := b.path("dir"); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // so that nobody gets there
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	_, err := b.try("delete_path", args{"path": "dir"})
	if back := unix.Setfsuid(0); back != nil {
		t.Fatal(back)
	}
	e := tools.AsError(err)
	if err == nil || e.Category != tools.PermanentFailure || !e.Begun || e.Denied() || !strings.Contains(e.Message, "only a part") {
		t.Errorf("%+v", e)
	}
	if _, err := os.Stat(whole); err != nil || b.exists("dir/a") {
		t.Errorf("%v, dir/a is there: %v", err, b.exists("dir/a"))
	}
}

const nobody = 65534
