//go:build !unix

package app

// private cannot be found out here.
func private(string) bool { return false }
