//go:build !unix

package sandbox

import (
	"os"
	"syscall"
)

const (
	term = syscall.SIGTERM
	kill = syscall.SIGKILL
)

func ownSession() *syscall.SysProcAttr { return nil }

// signalTree kills the process. This system has no gentler way.
func signalTree(pid int, _ syscall.Signal, known []int) []int {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
	return known
}

func groupAlive(int) bool { return false }

func signalOf(*os.ProcessState) string { return "" }
