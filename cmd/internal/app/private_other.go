//go:build !unix

package app

// private cannot be determined on this system.
func private(string) bool { return false }
