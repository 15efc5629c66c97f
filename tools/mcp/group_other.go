//go:build !unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

// reapGroup waits until a child has ended; there are no groups here.
func reapGroup(cmd *exec.Cmd) { _ = cmd.Wait() }

// termGroup does nothing: there is no gentle way here.
func termGroup(int) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
