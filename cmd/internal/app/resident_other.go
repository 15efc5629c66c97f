//go:build !linux

package app

import "runtime/debug"

// releaseStart returns the garbage of the start to the system.
func releaseStart() { debug.FreeOSMemory() }
