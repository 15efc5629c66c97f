//go:build unix

package app

import (
	"os"
	"syscall"
)

// private says whether this account owns a directory that nobody else can look into, as the program makes its own.
func private(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}
