package disk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// Watch follows what one command does to the disk.
type Watch struct {
	g     *Guard
	dir   string
	ws    string
	limit int64 // of the workspace
}

// Watch begins to follow a command in a canonical directory. The error refuses the command: the disk has no room for
// it.
func (g *Guard) Watch(ctx context.Context, dir string) (*Watch, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // a nil Watch is never over
	}
	w := &Watch{g: g, dir: dir}
	room, reserve, err := g.spare(dir)
	if err == nil && room == 0 {
		return nil, reserveFull(reserve)
	}
	if err != nil {
		return nil, err
	}
	if w.ws = g.workspace(dir); w.ws == "" || g.o.MaxBytes <= 0 {
		w.ws = ""
		return w, nil
	}
	used, _, err := g.measured(ctx, w.ws, g.o.MaxBytes)
	if err != nil {
		return nil, err
	}
	// Who is over the limit may still run what frees space.
	w.limit = max(g.o.MaxBytes, used+slack)
	return w, nil
}

// Follow looks until ctx ends, or until the command has to end: then it says why. The reserve and the limit of the
// workspace are looked at side by side, because a walk over a large workspace takes a while.
func (w *Watch) Follow(ctx context.Context) error {
	if w == nil {
		return nil
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg sync.WaitGroup
	for _, check := range []func(context.Context) (time.Duration, error){w.Reserve, w.Quota} {
		wg.Go(func() {
			for {
				next, over := check(ctx)
				if over != nil {
					end(over)
					return
				}
				timer := time.NewTimer(next)
				select {
				case <-ctx.Done():
					timer.Stop()
					return
				case <-timer.C:
				}
			}
		})
	}
	wg.Wait()
	if full, ok := errors.AsType[*tools.Error](context.Cause(ctx)); ok {
		return full
	}
	return nil
}

// Reserve says why the command has to end because the disk is almost full, nil when it may go on, and when to look
// again.
func (w *Watch) Reserve(context.Context) (next time.Duration, over error) {
	next = longest
	for _, dir := range []string{w.dir, w.g.o.Own} {
		if dir == "" {
			continue
		}
		room, reserve, err := w.g.spare(dir)
		switch {
		case err != nil: // a directory that the command removed says nothing about the disk
			continue
		case room == 0:
			return shortest, reserveFull(reserve)
		}
		next = min(next, interval(room))
	}
	return next, nil
}

// Quota says why the command has to end because its workspace is full, nil when it may go on, and when to look again.
// The workspace is walked only when it may have come over its limit, and for no more than a twentieth of the time.
func (w *Watch) Quota(ctx context.Context) (next time.Duration, over error) {
	if w.ws == "" {
		return time.Hour, nil
	}
	used, cost, err := w.g.measured(ctx, w.ws, w.limit)
	if err != nil {
		return longest, nil
	}
	if used > w.limit {
		return shortest, w.g.quotaFull()
	}
	return max(min(longest, interval(w.limit-used)), walkShare*cost), nil
}

// interval returns how soon so much room can be used up.
func interval(room int64) time.Duration {
	if room > fastest {
		return longest
	}
	return min(longest, max(shortest, time.Duration(room)*time.Second/fastest))
}
