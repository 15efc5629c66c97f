//go:build !unix

package check

// NotWritable cannot be determined on this system without writing.
func NotWritable(string) string { return "" }
