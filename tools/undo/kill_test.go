package undo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/undo"
)

// childDir tells a process that it is to undo the turn "t" of the world in a directory.
const childDir = "ZEPH_TEST_UNDO"

// TestKilledUndoing kills real processes while they put files back, at any time: the next one finishes the work, and
// nothing is left over.
func TestKilledUndoing(t *testing.T) {
	if top := os.Getenv(childDir); top != "" {
		newWorld(t, top, undo.Limits{}).undo(t.Context(), t, "t")
		return
	}
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	for i := range 300 {
		put(t, filepath.Join(w.dir, fmt.Sprint("d", i%10), fmt.Sprint("f", i)), fmt.Sprint("old ", i))
	}
	put(t, filepath.Join(w.dir, "kind/of/thing"), "old")
	if err := os.Chmod(filepath.Join(w.dir, "d3"), 0o555); err != nil { //nolint:gosec // it has to be executable
		t.Fatal(err)
	}
	before := tree(t, w.dir)
	w.run(t.Context(), "t", func() {
		_ = os.Chmod(filepath.Join(w.dir, "d3"), 0o755) //nolint:gosec // it has to be executable
		for i := range 10 {
			_ = os.RemoveAll(filepath.Join(w.dir, fmt.Sprint("d", i)))
		}
		_ = os.RemoveAll(filepath.Join(w.dir, "kind"))
		put(t, filepath.Join(w.dir, "kind"), "a file")
		for i := range 10 {
			put(t, filepath.Join(w.dir, fmt.Sprint("d", i), "new/er"), "new")
		}
		put(t, filepath.Join(w.dir, "d1/f1"), "changed")
		put(t, filepath.Join(w.dir, "d0"+"/f0/dir"), "a directory")
	})
	killed := 0
	for delay := 20 * time.Millisecond; delay < 5*time.Second; delay += delay / 8 {
		if child(t, filepath.Dir(w.dir), delay) == nil {
			break
		}
		killed++
	}
	r, err := w.store.Undo(t.Context(), "ws", undo.Key("t"), undo.Undone{})
	if err != nil || r.Count(undo.Done) != len(r.Files) {
		t.Fatalf("undo: %s, %v", states(r), err)
	}
	if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
		t.Errorf("after %d kills (-before +now):\n%s", killed, diff)
	}
	if killed == 0 {
		t.Error("no process was killed")
	}
}

// child undoes in another process, and kills it after a while.
func child(t *testing.T, top string, after time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledUndoing$") //nolint:gosec // the test itself
	cmd.Env = append(os.Environ(), childDir+"="+top)
	err := cmd.Run()
	if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the child: %v", err)
	}
	return err
}

// TestLocked: putting back does not wait for somebody who does not leave, and neither does a call.
func TestLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{Wait: 300 * time.Millisecond})
	at := filepath.Join(w.dir, "a")
	w.run(t.Context(), "t", func() { put(t, at, "new") })
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(w.dir), "undo/ws/lock"), os.O_RDWR, 0)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.store.Undo(t.Context(), "ws", undo.Key("t"), undo.Undone{})
		done <- err
	}()
	stopped, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w.run(stopped, "u", func() {}) // it was stopped while it waited
	if err := <-done; !errors.Is(err, undo.ErrBusy) {
		t.Errorf("undo while another process holds the lock: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if r := w.undo(t.Context(), t, "t"); states(r) != "a=made:done" {
		t.Errorf("undo after that: %s", states(r))
	}
	if _, ok, err := w.store.Look(t.Context(), "ws", undo.Key("u")); ok || err != nil {
		t.Errorf("a call that was stopped before it began: %v, %v", ok, err)
	}
}
