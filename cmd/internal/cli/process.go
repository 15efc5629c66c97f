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
	pressed := make(chan os.Signal, 8) // as many as anybody presses in anger
	signal.Notify(pressed, os.Interrupt)
	defer signal.Stop(pressed)
	env := Standard()
	env.Interrupts = pressed
	return Main(ctx, args, env)
}

// interrupts hands Ctrl-C to whoever wants it: at first to the end of the command.
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

// take asks for the signals until give is called; whoever does so reads them.
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
