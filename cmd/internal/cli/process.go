package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Process runs a command line as the process itself, with its signals, and returns the exit code.
func Process(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pressed := make(chan os.Signal, 8) // more than anybody presses
	signal.Notify(pressed, os.Interrupt)
	defer signal.Stop(pressed)
	env := Standard()
	env.Interrupts = pressed
	return Main(ctx, args, env)
}

// interrupts passes Ctrl-C to the current receiver: initially it ends the command.
type interrupts struct {
	mu    sync.Mutex
	taken chan struct{}
}

// watch reads the signals until ctx ends.
func (i *interrupts) watch(ctx context.Context, pressed <-chan os.Signal, end func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-pressed:
		}
		i.mu.Lock()
		taken := i.taken
		i.mu.Unlock()
		if taken == nil {
			end()
			continue
		}
		select {
		case taken <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// take redirects the signals to the caller until give is called.
func (i *interrupts) take() (pressed <-chan struct{}, give func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := make(chan struct{}, 8)
	i.taken = taken
	return taken, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.taken = nil
	}
}
