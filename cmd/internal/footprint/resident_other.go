//go:build !linux

package footprint

import "runtime/debug"

// release returns the garbage of the heap to the system.
func release() { debug.FreeOSMemory() }
