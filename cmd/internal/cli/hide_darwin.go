package cli

import "golang.org/x/sys/unix"

// The requests that read and set what a terminal does.
const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA
