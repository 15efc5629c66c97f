//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package audit

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile locks the file for this process, because two writers would break the chain.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrHeld
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS): // a file system without locks
		return nil
	default:
		return fmt.Errorf("lock file: %w", err)
	}
}

// unlockFile unlocks the file before it is closed, because a child process that is just being
// created may share it for a moment.
func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// countNames returns the number of a file's names: 0 if it was removed.
func countNames(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // narrower on other systems
	}
	return 1
}
