//go:build linux || darwin

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// hide returns a function that stops a terminal from showing what is typed; show undoes it.
func hide(f *os.File) func() (show func(), err error) {
	return func() (func(), error) {
		fd := int(f.Fd())
		before, err := unix.IoctlGetTermios(fd, getTermios)
		if err != nil {
			return nil, err
		}
		quiet := *before
		quiet.Lflag &^= unix.ECHO
		quiet.Lflag |= unix.ICANON | unix.ISIG
		if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
			return nil, err
		}
		// the terminal is gone: nothing is shown
		return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, nil
	}
}
