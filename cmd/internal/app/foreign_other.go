//go:build !linux

package app

// foreignDisk cannot be determined on this system.
func foreignDisk(string) string { return "" }
