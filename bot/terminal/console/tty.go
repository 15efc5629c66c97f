package console

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/term"
)

const (
	pasteOn  = "\x1b[?2004h" // pasted text comes between markers
	pasteOff = "\x1b[?2004l"
)

// TTY is a terminal with raw input. Safe for concurrent use.
type TTY struct {
	in, out *os.File

	mu     sync.Mutex
	former *term.State // nil = restored
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// OpenTTY makes the input of a terminal raw. Close restores it.
func OpenTTY(in, out *os.File) (*TTY, error) {
	t := &TTY{in: in, out: out}
	if err := t.setRaw(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *TTY) setRaw() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	former, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	t.former = former
	_, _ = t.out.WriteString(pasteOn) // if it is gone, nobody pastes
	return nil
}

// Close restores the terminal. It may be called more than once, and from a signal handler's goroutine.
func (t *TTY) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.former == nil {
		return
	}
	_, _ = t.out.WriteString(syncOff + pasteOff + showCursor) // if it is gone, there is nothing to restore
	_ = term.Restore(int(t.in.Fd()), t.former)                // as above
	t.former = nil
}

// Read implements io.Reader.
func (t *TTY) Read(p []byte) (int, error) { return t.in.Read(p) }

// Write implements io.Writer.
func (t *TTY) Write(p []byte) (int, error) { return t.out.Write(p) }

// Size returns the size of the terminal; zero if it is not known.
func (t *TTY) Size() Size { return SizeOf(t.out) }

// SizeOf returns the size of the terminal that a file is; zero if it is none.
func SizeOf(f *os.File) Size {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return Size{}
	}
	return Size{Cols: cols, Rows: rows}
}
