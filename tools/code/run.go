package code

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Times of the background work.
const (
	settle     = time.Second      // without changes, before files that changed are read
	refreshGap = 10 * time.Second // between two such readings of one root
	sweepEvery = time.Hour
)

// Run reads the given roots, then what changes in watched ones, and forgets roots whose directory is gone, until ctx
// ends. Searches do not need it: they read themselves what has changed.
func (x *Index) Run(ctx context.Context, first []string) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	if x.Watcher != nil {
		watching.Go(func() {
			if err := x.Watcher.Run(ctx, x.markChanged); err != nil {
				x.logOnce(err, "code index: directories are no longer watched; each search looks for changed files")
			}
		})
	}
	x.sweepRoots(ctx)
	for _, path := range first {
		x.refreshBackground(ctx, path)
	}
	wait := time.NewTimer(sweepEvery)
	defer wait.Stop()
	swept := x.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.kick:
			wait.Reset(settle) // again and again while files change
			continue
		case <-wait.C:
		}
		next := sweepEvery
		if later := x.catchUp(ctx); later > 0 {
			next = later
		}
		if now := x.Now(); now.Sub(swept) >= sweepEvery {
			x.sweepRoots(ctx)
			swept = now
		}
		wait.Reset(next)
	}
}

// markChanged marks a root as changed.
func (x *Index) markChanged(path string) {
	x.mu.Lock()
	r := x.roots[path]
	x.mu.Unlock()
	if r == nil {
		return
	}
	r.touchRoot()
	select {
	case x.kick <- struct{}{}:
	default: // it has been said already
	}
}

// catchUp reads what has changed in watched roots. It returns when it has to look again; 0 = nothing is waiting.
func (x *Index) catchUp(ctx context.Context) (later time.Duration) {
	x.mu.Lock()
	var list []*root
	for _, r := range x.roots {
		list = append(list, r)
	}
	x.mu.Unlock()
	for _, r := range list {
		r.mu.RLock()
		dirty, age := r.dirty && r.watched, x.Now().Sub(r.walked)
		r.mu.RUnlock()
		switch {
		case !dirty:
		case age >= 0 && age < refreshGap:
			later = max(later, refreshGap-age)
		default:
			x.refreshBackground(ctx, r.path)
		}
	}
	return later
}

// refreshBackground refreshes a root for which nobody waits.
func (x *Index) refreshBackground(ctx context.Context, path string) {
	began := x.Now()
	err := x.Refresh(ctx, path, nil)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		x.logOnce(err, "code index: a directory cannot be read")
		return
	}
	r := x.loadRoot(path)
	r.mu.RLock()
	defer r.mu.RUnlock()
	x.Log.Debug().Str("root", path).Int("files", len(r.files)).
		Int("symbols", r.symbols).Dur("took", x.Now().Sub(began)).Msg("code index")
}

// sweepRoots forgets the roots whose directory is gone.
func (x *Index) sweepRoots(ctx context.Context) {
	if x.Store == nil {
		return
	}
	roots, err := x.Store.Roots(ctx)
	if err != nil {
		if ctx.Err() == nil {
			x.logOnce(err, "code index: what was stored cannot be read; the files are read again")
		}
		return
	}
	for _, path := range roots {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := x.Forget(ctx, path); err != nil && ctx.Err() == nil {
			x.Log.Warn().Err(err).Str("root", path).
				Msg("code index: a directory that is gone is not forgotten; tried again in an hour")
		}
	}
}

// Forget removes what is known of a directory and the files below it: it is gone, or is about to
// be. path is its canonical path.
func (x *Index) Forget(ctx context.Context, path string) error {
	x.mu.Lock()
	delete(x.roots, path)
	x.mu.Unlock()
	if x.Watcher != nil {
		x.Watcher.Unwatch(path)
	}
	var errs []error
	if x.Store != nil {
		errs = append(errs, x.Store.Forget(ctx, path))
	}
	if x.Semantic != nil {
		errs = append(errs, x.Semantic.Forget(ctx, path))
	}
	return errors.Join(errs...)
}
