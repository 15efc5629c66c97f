//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package audit

import "os"

// lock does nothing on systems without advisory locks.
func lock(*os.File) error { return nil }

// unlock does nothing where nothing was locked.
func unlock(*os.File) {}

// names returns the number of a file's names. It is not known here: 1 means that the file was moved.
func names(os.FileInfo) uint64 { return 1 }
