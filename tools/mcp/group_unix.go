//go:build unix

package mcp

import "syscall"

// termGroup asks a process group to end.
func termGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) } // gone is as good as signalled

// killGroup ends a process group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
