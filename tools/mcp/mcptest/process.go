package mcptest

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// multiply starts the grandchild and waits until it has left its number, so that whoever counts processes later finds
// it.
func (o Options) multiply(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self) //nolint:noctx // it has to outlive whatever ctx says; that is what it is for
	env := Options{Behaviour: stay, Pids: o.Pids}.Env()
	for name, value := range env {
		child.Env = append(child.Env, name+"="+value)
	}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		return err
	}
	return until(ctx, func() bool {
		_, err := os.Stat(filepath.Join(o.Pids, strconv.Itoa(child.Process.Pid)))
		return err == nil
	})
}

// stay is a process that heeds nothing. It ends with the directory of its number, so that a failed test does not leave
// it behind for good.
func (o Options) stay() error {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	return until(context.Background(), func() bool {
		_, err := os.Stat(o.Pids)
		return err != nil
	})
}
