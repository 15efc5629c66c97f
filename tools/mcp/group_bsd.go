//go:build unix && !linux

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a process in a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reapGroup waits until a child has ended and ends what is left of its group.
func reapGroup(cmd *exec.Cmd) {
	_ = cmd.Wait() // how it ended stands in ProcessState
	killGroup(cmd.Process.Pid)
}
