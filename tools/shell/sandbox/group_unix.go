//go:build unix

package sandbox

import (
	"os"
	"syscall"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

const (
	term = syscall.SIGTERM
	kill = syscall.SIGKILL
)

// ownSession starts a command in a session of its own, without a terminal and with its own process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// signalTree signals the process group of pid, every process below it, and those in known. It returns the processes
// that it found, because they cannot be found again once their parents are gone.
func signalTree(pid int, sig syscall.Signal, known []int) []int {
	found := append(supervisor.Descendants(pid), known...)
	_ = syscall.Kill(-pid, sig) // it may have ended already
	for _, p := range found {
		_ = syscall.Kill(p, sig)
	}
	return found
}

// groupAlive reports whether a process of the group of pid is left.
func groupAlive(pid int) bool { return syscall.Kill(-pid, 0) == nil }

// signalOf returns the signal that ended a process; "" when it exited.
func signalOf(s *os.ProcessState) string {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}
