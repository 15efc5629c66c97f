//go:build !linux

package footprint

import "runtime/debug"

// ReleaseStart returns the garbage of the start to the system.
func ReleaseStart() { debug.FreeOSMemory() }
