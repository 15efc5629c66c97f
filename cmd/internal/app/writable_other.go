//go:build !unix

package app

// notWritable cannot be determined on this system without writing.
func notWritable(string) string { return "" }
