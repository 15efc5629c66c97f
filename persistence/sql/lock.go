//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sql

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("the data directory is in use")

// LockDir creates the directory if necessary and locks it for this process until release or the end of the process:
// with embedded engines, two processes in one directory would work on the same sessions. The mode, such as "serve", is
// shown to the next process that wants the lock. If the directory is locked already, the error is ErrLocked, with a
// sentence for the operator.
func LockDir(dir, mode string) (release func(), err error) { return LockFile(dir, "lock", mode) }

// LockFile does the same with a different lock file, for modes that share a directory with a service.
func LockFile(dir, name, mode string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s belongs to another running zephbot%s; "+
			"stop that one, or give this one its own directory with --data-dir",
			ErrLocked, dir, lockHolder(file))
		return nil, errors.Join(err, file.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the data directory %s: %w", dir, err), file.Close())
	}
	if err := giveToOwner(file, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data directory %s: %w", dir, err), file.Close())
	}
	if err := signLock(file, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data directory %s: %w", dir, err), file.Close())
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			// Unlock explicitly: a child that is just being forked shares the file for a moment, and with it a lock
			// that is only closed.
			_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
			_ = file.Close()
		})
	}, nil
}

// giveToOwner gives a file that root may have made to the account that the directory belongs to, which opens it next.
func giveToOwner(file *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return file.Chown(int(stat.Uid), int(stat.Gid))
	}
	return nil
}

// maxSign bounds what is read of a signature, in bytes.
const maxSign = 64

// signLock writes the id and the mode of this process for the message to the next one.
func signLock(file *os.File, mode string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strings.TrimSpace(strconv.Itoa(os.Getpid())+" "+mode)+"\n"), 0)
	return err
}

// lockHolder describes the process that has the lock, if it can be read.
func lockHolder(file *os.File) string {
	data := make([]byte, maxSign)
	n, _ := file.ReadAt(data, 0) // reaching the end of the file is not an error here
	number, mode, _ := strings.Cut(strings.TrimSpace(string(data[:n])), " ")
	pid, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return ""
	case mode == "": // written by an earlier version
		return fmt.Sprintf(" (process %d)", pid)
	default:
		return fmt.Sprintf(" (process %d, zephbot %s)", pid, mode)
	}
}
