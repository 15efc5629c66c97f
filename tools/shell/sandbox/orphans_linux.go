package sandbox

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// Shield protects this process from the processes that it starts: its memory, files and environment cannot be read
// through /proc, not even by its own user. A process that has lost its helper becomes a child of this process, so that
// it can be found and ended. A program calls Shield once, at its start. From then on, it starts processes in sessions
// of their own only through this package, and only with a helper.
func Shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// isShielded reports whether Shield was called.
func isShielded() bool {
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return err == nil && on != 0
}

// helpers is the set of running helpers of this process.
var helpers = &helperSet{running: map[int]bool{}}

// helperSet records which children are helpers. Its methods are safe for concurrent use.
type helperSet struct {
	// write-locked while children are inspected: a helper is then either registered or not yet started
	mu      sync.RWMutex
	list    sync.Mutex
	running map[int]bool
}

func (h *helperSet) startHelper(cmd *exec.Cmd) error {
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

// waitHelper waits for a helper. The status is not needed, because the helper has reported everything.
func (h *helperSet) waitHelper(cmd *exec.Cmd) {
	_ = cmd.Wait()
	h.list.Lock()
	defer h.list.Unlock()
	delete(h.running, cmd.Process.Pid)
}

// orphanRounds is how often orphans are searched: the children of a killed orphan become orphans too.
const orphanRounds = 100

// killOrphans kills the processes that we adopted because their helper is gone. Everything that a command starts is in
// another session, while our own processes other than helpers are in ours.
func (h *helperSet) killOrphans() {
	for range orphanRounds {
		found := h.listOrphans()
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			for _, p := range append(supervisor.Descendants(pid), pid) {
				_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended already
			}
		}
		for _, pid := range found {
			reapChild(pid)
		}
	}
}

func (h *helperSet) listOrphans() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list.Lock()
	defer h.list.Unlock()
	ours, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	var found []int
	for _, pid := range supervisor.Children(os.Getpid()) {
		if sid, err := unix.Getsid(pid); err == nil && sid != ours && !h.running[pid] {
			found = append(found, pid)
		}
	}
	return found
}

// reapChild waits for a killed child, and leaves one that does not die.
func reapChild(pid int) {
	for end := time.Now().Add(stuckAfter); time.Now().Before(end); <-time.After(time.Millisecond) {
		var ws syscall.WaitStatus
		if got, err := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil); got == pid || err == syscall.ECHILD {
			return
		}
	}
}
