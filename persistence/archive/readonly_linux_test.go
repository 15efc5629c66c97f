package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/persistence/archive"
)

// unprivileged takes from the test what root may and the service may not: to ignore the modes of its own files. It is
// about one thread, which ends with the test. The test must not start others.
func unprivileged(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the goroutine of the test
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	check(t, unix.Capget(&head, &sets[0]))
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	check(t, unix.Capset(&head, &sets[0]))
	dir := filepath.Join(t.TempDir(), "a", "b")
	check(t, os.MkdirAll(dir, 0o700))
	check(t, os.Chmod(dir, 0o555))
	if err := os.Rename(dir, filepath.Join(dir, "..", "..", "b")); !errors.Is(err, fs.ErrPermission) {
		t.Skipf("this file system moves what is not writable: %v", err)
	}
}

// locked makes a workspace as a model leaves it after chmod: a file, and a mode of the directory.
func locked(t *testing.T, dir, text string, mode fs.FileMode) {
	t.Helper()
	write(t, filepath.Join(dir, "deep", "a.txt"), text)
	check(t, os.Chmod(filepath.Join(dir, "deep"), mode))
	check(t, os.Chmod(dir, mode))
}

// backupOfLocked is a backup with workspaces that are not writable.
func backupOfLocked(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	unlock(t, dir)
	locked(t, filepath.Join(dir, "w1"), "of the backup", 0o555)
	locked(t, filepath.Join(dir, "w2"), "of the backup", 0o500)
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, head())
	check(t, err)
	check(t, w.Tree(t.Context(), archive.Workspaces, dir, nil))
	_, err = w.Close()
	check(t, err)
	return out.Bytes()
}

// unlock lets the directory of a test be removed.
func unlock(t *testing.T, dir string) {
	t.Cleanup(func() {
		check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return err
		}))
	})
}

// occupied is the directory of a service with a workspace that is not writable.
func occupied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	unlock(t, dir)
	locked(t, filepath.Join(dir, "workspaces", "w1"), "of before", 0o555|fs.ModeSetgid)
	return dir
}

const aside = "workspaces/replaced-20261128T010203Z/w1"

// exchanged checks that the backup took the place of what was there, with the modes of both.
func exchanged(t *testing.T, dir string) {
	t.Helper()
	if diff := cmp.Diff(map[string]string{
		"workspaces/w1/deep/a.txt": "of the backup", "workspaces/w2/deep/a.txt": "of the backup", aside + "/deep/a.txt": "of before",
	}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	for name, mode := range map[string]fs.FileMode{
		"workspaces/w1": 0o555, "workspaces/w1/deep": 0o555, "workspaces/w2": 0o500, aside: 0o555 | fs.ModeSetgid,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode|fs.ModeDir {
			t.Errorf("%s: %v, %v instead of %v", name, info.Mode(), err, mode)
		}
	}
}

// TestRestoreReadOnly: a model may make its workspace read-only (chmod 555 .), before the backup and after it.
func TestRestoreReadOnly(t *testing.T) {
	t.Parallel()
	unprivileged(t)
	raw := backupOfLocked(t)
	dir := occupied(t)
	before := tree(t, dir)
	refused, err := stage(t, dir, raw) // as without --force
	check(t, err)
	refused.Discard()
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("a refused restore left: %s", diff)
	}
	s, err := stage(t, dir, raw)
	check(t, err)
	check(t, s.Commit())
	exchanged(t, dir)
}

// TestRestoreReadOnlyIsKilled kills the restore after each rename, and between a rename and the change of the mode before
// or after it: the mode is the right one in the end.
func TestRestoreReadOnlyIsKilled(t *testing.T) {
	t.Parallel()
	unprivileged(t)
	raw := backupOfLocked(t)
	old := func(dir string) string { return filepath.Join(dir, "workspaces", "w1") }
	for name, killed := range map[string]func(dir string, text []byte){
		"before":            func(string, []byte) {},
		"after one rename":  func(_ string, text []byte) { check(t, archive.Interrupted(text, 1)) },
		"after two renames": func(_ string, text []byte) { check(t, archive.Interrupted(text, 2)) },
		"before the rename": func(dir string, _ []byte) { check(t, os.Chmod(old(dir), 0o755|fs.ModeSetgid)) },
		"after the rename": func(dir string, _ []byte) {
			check(t, os.Chmod(old(dir), 0o755|fs.ModeSetgid))
			check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, aside)), 0o700))
			check(t, os.Rename(old(dir), filepath.Join(dir, aside)))
		},
		"the second one": func(dir string, text []byte) {
			check(t, archive.Interrupted(text, 2))
			check(t, os.Chmod(old(dir), 0o755))
		},
	} {
		dir := occupied(t)
		s, err := stage(t, dir, raw)
		check(t, err)
		text, _, err := s.Plan()
		check(t, err)
		killed(dir, text)
		write(t, filepath.Join(dir, archive.PlanName), string(text))
		if done, err := archive.Finish(dir); !done || err != nil {
			t.Errorf("%s: finished %v, %v", name, done, err)
			continue
		}
		exchanged(t, dir)
	}
}
