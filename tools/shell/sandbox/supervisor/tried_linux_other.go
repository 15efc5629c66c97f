//go:build linux && !amd64

package supervisor

// renamedPaths returns which names a call changes.
func renamedPaths(_ int32, args [6]uint64) []named {
	//nolint:gosec // as the kernel reads them
	return []named{{int(int32(args[0])), uintptr(args[1])}, {int(int32(args[2])), uintptr(args[3])}}
}
