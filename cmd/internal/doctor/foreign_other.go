//go:build !linux

package doctor

// foreignDisk cannot be determined on this system.
func foreignDisk(string) string { return "" }
