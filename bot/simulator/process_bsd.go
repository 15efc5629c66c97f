//go:build unix && !linux

package simulator

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the process into a group of its own.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
