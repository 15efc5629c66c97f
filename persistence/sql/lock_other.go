//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package sql

import "errors"

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("the data directory is in use")

// LockDir needs a file lock that ends with its process. This system has none that is supported.
func LockDir(dir, _ string) (release func(), err error) {
	return nil, errors.New("lock the data directory " + dir + ": not possible on this system; " +
		"set database.url to a PostgreSQL database")
}

// LockFile fails like LockDir.
func LockFile(dir, _, mode string) (release func(), err error) { return LockDir(dir, mode) }
