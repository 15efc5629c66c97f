//go:build unix

package mcp_test

import (
	"os/signal"
	"syscall"
)

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

// alive reports whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
