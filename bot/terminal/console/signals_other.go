//go:build !unix

package console

import "os"

// Resized receives nothing: this system has no such signal.
func Resized() (changed <-chan os.Signal, stop func()) { return nil, func() {} }

// Deadly receives nothing, as above.
func Deadly() (sent <-chan os.Signal, stop func()) { return nil, func() {} }

// Die does nothing: there are no such signals.
func Die(os.Signal) {}

// Suspend does nothing: this system cannot stop a process.
func (t *TTY) Suspend() error { return nil }
