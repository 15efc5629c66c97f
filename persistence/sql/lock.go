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

// ErrLocked means that another process works in the data directory.
var ErrLocked = errors.New("the data directory is in use")

// LockDir makes the directory when it is absent and takes it for this process alone, until release or the end of the process: with embedded
// engines two processes in one directory would work on the same sessions. Taken already: ErrLocked, with a sentence for the operator.
func LockDir(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s belongs to another running zephbot%s; stop that one, or give this one its own directory with --data-dir",
			ErrLocked, dir, holder(file))
		return nil, errors.Join(err, file.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the data directory %s: %w", dir, err), file.Close())
	}
	if err := sign(file); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data directory %s: %w", dir, err), file.Close())
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			// Said aloud: a child that is just being made shares the file for a moment, and with it a lock that is only closed.
			_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
			_ = file.Close()
		})
	}, nil
}

// sign leaves the number of this process for the message to the next one.
func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder names the process that has the lock, when it can be read.
func holder(file *os.File) string {
	data := make([]byte, 32)
	n, _ := file.ReadAt(data, 0) // the end of the file comes early: that is no error here
	pid, err := strconv.Atoi(strings.TrimSpace(string(data[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
