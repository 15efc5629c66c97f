//go:build unix

package layout

import (
	"os"
	"syscall"
)

// private reports whether this account owns a directory that nobody else can read, like those that the program creates.
func private(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}
