package workspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// Watch monitors what one command does to the disk.
type Watch struct {
	g     *Guard
	dir   string
	ws    string
	limit int64 // limit of the workspace
}

// Watch starts to monitor a command in a canonical directory. An error means that the command must not run, because the
// disk has no space for it.
func (g *Guard) Watch(ctx context.Context, dir string) (*Watch, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // a nil Watch is never over
	}
	w := &Watch{g: g, dir: dir}
	room, reserve, err := g.spareSpace(dir)
	if err == nil && room == 0 {
		return nil, reserveFull(reserve)
	}
	if err != nil {
		return nil, err
	}
	if w.ws = g.workspaceOf(dir); w.ws == "" || g.o.MaxBytes <= 0 {
		w.ws = ""
		return w, nil
	}
	used, _, err := g.measureWorkspace(ctx, w.ws, g.o.MaxBytes)
	if err != nil {
		return nil, err
	}
	// Above the limit, commands that free space must still be possible.
	w.limit = max(g.o.MaxBytes, used+cleanupSlack)
	return w, nil
}

// Follow monitors the disk until ctx ends, or until the command has to be ended, and returns the reason. The reserve
// and the workspace's limit are checked concurrently, because walking a large workspace takes time.
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

// Reserve returns an error if the command has to be ended because the disk is almost full, and when to check again.
func (w *Watch) Reserve(context.Context) (next time.Duration, over error) {
	next = longestInterval
	for _, dir := range []string{w.dir, w.g.o.Own} {
		if dir == "" {
			continue
		}
		room, reserve, err := w.g.spareSpace(dir)
		switch {
		case err != nil: // if the command has removed the directory, this says nothing about the disk
			continue
		case room == 0:
			return shortestInterval, reserveFull(reserve)
		}
		next = min(next, checkInterval(room))
	}
	return next, nil
}

// Quota returns an error if the command has to be ended because its workspace is full, and when to check again. It
// walks the workspace only if it may have exceeded its limit, and for at most a twentieth of the time.
func (w *Watch) Quota(ctx context.Context) (next time.Duration, over error) {
	if w.ws == "" {
		return time.Hour, nil
	}
	used, cost, err := w.g.measureWorkspace(ctx, w.ws, w.limit)
	if err != nil {
		return longestInterval, nil
	}
	if used > w.limit {
		return shortestInterval, w.g.quotaFull()
	}
	return max(min(longestInterval, checkInterval(w.limit-used)), walkShare*cost), nil
}

// checkInterval returns how soon this much space can be used up.
func checkInterval(room int64) time.Duration {
	if room > fastestWrite {
		return longestInterval
	}
	return min(longestInterval, max(shortestInterval, time.Duration(room)*time.Second/fastestWrite))
}
