//go:build !unix

package app

// notWritable cannot be found out here without writing.
func notWritable(string) string { return "" }
