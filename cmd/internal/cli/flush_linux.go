package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush drops what was typed at a terminal and not read yet, also a line that is not ended.
func flush(f *os.File) func() {
	// no terminal: there is nothing to drop
	return func() { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
}
