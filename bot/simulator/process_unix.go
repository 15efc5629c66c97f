//go:build unix

package simulator

import (
	"os/exec"
	"syscall"
)

// killGroup kills the process and what it started with SIGKILL. A group that is gone already is what was wanted.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// terminate asks the process to end.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
