//go:build unix

package console

import (
	"os"
	"os/signal"
	"syscall"
)

// Resized receives a value when the size of the terminal has changed, until stop is called.
func Resized() (changed <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// Deadly receives the signals that end the process and that a person or the system sends to one at a terminal, until
// stop is called. After it has restored the terminal, the receiver calls Die.
func Deadly() (sent <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT)
	return c, func() { signal.Stop(c) }
}

// Die ends the process by a signal, as if nobody had received it.
func Die(s os.Signal) {
	signal.Reset(s)
	if number, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // it can always be sent to oneself
	}
}

// Suspend restores the terminal, stops the process until it is continued, and makes the input raw again.
func (t *TTY) Suspend() error {
	t.Close()
	_ = syscall.Kill(os.Getpid(), syscall.SIGTSTP) // without job control nothing happens
	return t.setRaw()
}
