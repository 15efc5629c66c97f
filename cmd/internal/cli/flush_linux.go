package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush discards what was typed at a terminal and not read yet, including an unfinished line.
func flush(f *os.File) func() {
	// No terminal: there is nothing to discard.
	return func() { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
}
