//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package sql

// Holder cannot be determined on this system, where directories cannot be locked.
func Holder(string) (who string, held bool, err error) { return "", false, nil }
