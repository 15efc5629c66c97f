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

// multiply starts the grandchild and waits until it has written its process id, so that a test that counts processes
// finds it.
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

// stay runs a process that ignores signals. It ends when the directory of its process id is removed, so that a failed
// test does not leave it behind.
func (o Options) stay() error {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	return until(context.Background(), func() bool {
		_, err := os.Stat(o.Pids)
		return err != nil
	})
}
