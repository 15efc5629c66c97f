//go:build unix

package simulator

import (
	"os/exec"
	"syscall"
)

// killGroup kills the process and what it started with SIGKILL. It is no error if the group no longer exists.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// terminate asks the process to exit.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
