//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sql

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Holder reports whether a process has locked a data directory, and describes it ("process 7, zephbot serve") if it can
// be read. It creates nothing, and a running process does not notice it. A directory without a lock file is not locked.
func Holder(dir string) (who string, held bool, err error) {
	file, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer func() { _ = file.Close() }() // it is only read
	// A shared lock is refused while a process has its own, and is given back at once.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return strings.Trim(lockHolder(file), " ()"), true, nil
	}
	if err != nil {
		return "", false, err
	}
	return "", false, syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
}
