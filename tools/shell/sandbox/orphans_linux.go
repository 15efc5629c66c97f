package sandbox

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/warden"
)

// Shield keeps this process out of the reach of what it starts: its memory, files and environment cannot be read
// through /proc, not even by its own user, and a process that lost its helper becomes its child, so that it can be
// found and ended. A program calls it once, at its start; from then on it starts processes in sessions of their own
// only by this package, and only with a helper.
func Shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// adopts says whether Shield was called.
func adopts() bool {
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return err == nil && on != 0
}

// helpers are the helpers of this process that run.
var helpers = &helperSet{running: map[int]bool{}}

// helperSet knows which children are helpers. Its methods are safe for concurrent use.
type helperSet struct {
	mu      sync.RWMutex // held for writing while children are looked through: a helper is then known, or not yet born
	list    sync.Mutex
	running map[int]bool
}

func (h *helperSet) start(cmd *exec.Cmd) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	h.list.Lock()
	defer h.list.Unlock()
	h.running[cmd.Process.Pid] = true
	return nil
}

// wait waits for a helper. Its status says nothing: the report did.
func (h *helperSet) wait(cmd *exec.Cmd) {
	_ = cmd.Wait()
	h.list.Lock()
	defer h.list.Unlock()
	delete(h.running, cmd.Process.Pid)
}

// orphanRounds is how often orphans are looked for: the children of one that was killed are the next.
const orphanRounds = 100

// killOrphans ends the processes that we adopted because their helper is gone. Whatever a command starts is in a
// session of its own; what we start ourselves besides helpers is in ours.
func (h *helperSet) killOrphans() {
	for range orphanRounds {
		found := h.orphans()
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			for _, p := range append(warden.Descendants(pid), pid) {
				_ = syscall.Kill(p, syscall.SIGKILL) // gone is as good
			}
		}
		for _, pid := range found {
			reap(pid)
		}
	}
}

func (h *helperSet) orphans() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list.Lock()
	defer h.list.Unlock()
	ours, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	var found []int
	for _, pid := range warden.Children(os.Getpid()) {
		if sid, err := unix.Getsid(pid); err == nil && sid != ours && !h.running[pid] {
			found = append(found, pid)
		}
	}
	return found
}

// reap takes in a killed child; one that does not die is left.
func reap(pid int) {
	for end := time.Now().Add(stuckAfter); time.Now().Before(end); <-time.After(time.Millisecond) {
		var ws syscall.WaitStatus
		if got, err := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil); got == pid || err == syscall.ECHILD {
			return
		}
	}
}
