package privacy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestRemoveLocked: a tree with read-only directories is deleted. An administrator of the machine deletes it anyway, so
// the modes are looked at as well; a link out of the tree changes nothing there.
func TestRemoveLocked(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	other := t.TempDir()
	for _, err := range []error{
		os.Chmod(other, 0o555),
		root.MkdirAll("tree/mod/cache", 0o755),
		root.WriteFile("tree/mod/cache/x.go", nil, 0o444),
		root.Symlink(other, "tree/link"),
		root.Chmod("tree/mod/cache", 0o555),
		root.Chmod("tree/mod", 0o500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	makeWritable(root, "tree")
	for dir, want := range map[string]fs.FileMode{
		filepath.Join(root.Name(), "tree/mod/cache"): 0o755, filepath.Join(root.Name(), "tree/mod"): 0o700, other: 0o555,
	} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", dir, info.Mode(), err, want)
		}
	}
	if err := errors.Join(root.Chmod("tree/mod/cache", 0o555), removeLocked(root, "tree")); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Lstat("tree"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
