package undo

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeaveBeforeExec: a process that was just forked, and has not become its program yet, holds a copy of every
// descriptor. The lock of a workspace is free all the same once it was given back.
func TestLeaveBeforeExec(t *testing.T) {
	t.Parallel()
	h := &home{name: "ws", dir: t.TempDir()}
	if err := h.acquire(); err != nil {
		t.Fatal(err)
	}
	forked, err := unix.Dup(int(h.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	h.leave()
	again := &home{name: "ws", dir: h.dir}
	if err := again.acquire(); err != nil {
		t.Errorf("right after it was given back: %v", err)
	} else {
		again.leave()
	}
	if err := unix.Close(forked); err != nil {
		t.Error(err)
	}
}
