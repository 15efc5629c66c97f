package supervisor

import "syscall"

// renamedPaths returns which names a call changes.
func renamedPaths(nr int32, args [6]uint64) []named {
	if nr == syscall.SYS_RENAME {
		return []named{{atFdcwd, uintptr(args[0])}, {atFdcwd, uintptr(args[1])}}
	}
	//nolint:gosec // as the kernel reads them
	return []named{{int(int32(args[0])), uintptr(args[1])}, {int(int32(args[2])), uintptr(args[3])}}
}
