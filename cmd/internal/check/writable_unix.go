//go:build unix

package check

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// NotWritable returns why this account cannot write to a file or create files in a directory; "" = it can, or it does
// not exist.
func NotWritable(path string) string {
	err := unix.Access(path, unix.W_OK)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return ""
	case errors.Is(err, unix.EROFS):
		return path + " is on a file system that cannot be written to; choose another place"
	case errors.Is(err, fs.ErrPermission):
		return path +
			" may not be written to by the user who runs zephbot; change its owner or its mode, or choose another place"
	default:
		return path + " cannot be written to: " + err.Error()
	}
}
