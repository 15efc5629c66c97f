//go:build !unix

package simulator

import "os/exec"

// ownGroup does nothing: there are no process groups here.
func ownGroup(*exec.Cmd) {}

// killGroup kills the process.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// terminate kills the process: there is no gentle signal here.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
