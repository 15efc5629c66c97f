// Package watch reports changes below directories. It says that something changed, not what: the one who is told looks.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// defaultLimit is how many directories are watched at most. Linux allows each user a limited number
// (fs.inotify.max_user_watches), of which other programs need some too.
const defaultLimit = 16_384

// ErrLimit means that no more directories can be watched.
var ErrLimit = errors.New("too many directories to watch")

// Watcher watches directories. Safe for concurrent use. The caller must Close it.
type Watcher struct {
	events *fsnotify.Watcher
	own    string // a directory in which Sync makes files, whose events come after all earlier ones
	limit  int

	mu      sync.Mutex
	dirs    map[string][]string // the roots of a watched directory: one root can be inside of another
	roots   map[string][]string // the directories of a root
	waiting map[string]chan struct{}
	next    int
	running bool
}

// New returns a Watcher that makes a directory of its own below dir. limit is the number of directories, 0 =
// defaultLimit. An error means that this system offers no watching.
func New(dir string, limit int) (*Watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch directories: %w", err)
	}
	if limit <= 0 {
		limit = defaultLimit
	}
	w := &Watcher{
		events: events, limit: limit, dirs: map[string][]string{}, roots: map[string][]string{},
		waiting: map[string]chan struct{}{},
	}
	if w.own, err = os.MkdirTemp(dir, "watch-"); err == nil {
		err = events.Add(w.own)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch directories: %w", err), w.Close())
	}
	return w, nil
}

// Close ends the watch.
func (w *Watcher) Close() error {
	err := w.events.Close()
	if w.own != "" {
		err = errors.Join(err, os.RemoveAll(w.own))
	}
	return err
}

// Watch watches directories of a root besides those that are watched already. After an error, the root is not watched.
func (w *Watcher) Watch(root string, dirs []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, dir := range dirs {
		if slices.Contains(w.dirs[dir], root) {
			continue
		}
		err := ErrLimit
		if len(w.dirs[dir]) > 0 { // for another root
			err = nil
		} else if len(w.dirs) < w.limit {
			err = w.events.Add(dir)
		}
		if errors.Is(err, os.ErrNotExist) { // it was deleted meanwhile, which its parent reports
			continue
		}
		if err != nil {
			w.unwatch(root)
			return fmt.Errorf("watch %d directories: %w", len(dirs), err)
		}
		w.dirs[dir] = append(w.dirs[dir], root)
		w.roots[root] = append(w.roots[root], dir)
	}
	return nil
}

// Unwatch ends the watch of a root.
func (w *Watcher) Unwatch(root string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwatch(root)
}

func (w *Watcher) unwatch(root string) {
	for _, dir := range w.roots[root] {
		w.dirs[dir] = slices.DeleteFunc(w.dirs[dir], func(r string) bool { return r == root })
		if len(w.dirs[dir]) == 0 {
			delete(w.dirs, dir)
			_ = w.events.Remove(dir) // it may be gone
		}
	}
	delete(w.roots, root)
}

// syncTime limits how long Sync waits.
const syncTime = 2 * time.Second

// Sync returns when all changes up to now were reported; false = they were not. The kernel reports in order, so that
// the event of a file that is made now comes after all others.
func (w *Watcher) Sync(ctx context.Context) bool {
	w.mu.Lock()
	if !w.running {
		w.mu.Unlock()
		return false
	}
	w.next++
	path := filepath.Join(w.own, strconv.Itoa(w.next))
	seen := make(chan struct{})
	w.waiting[path] = seen
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiting, path)
		w.mu.Unlock()
		_ = os.Remove(path) // Close removes what is left
	}()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return false
	}
	timer := time.NewTimer(syncTime)
	defer timer.Stop()
	select {
	case <-seen:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// Run reports the roots in which something changed until ctx ends. changed must not block.
func (w *Watcher) Run(ctx context.Context, changed func(root string)) error {
	w.set(true)
	defer w.set(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.events.Events:
			if !ok {
				return nil
			}
			w.event(e, changed)
		case _, ok := <-w.events.Errors: // events were lost: everything may have changed
			if !ok {
				return nil
			}
			w.mu.Lock()
			roots := make([]string, 0, len(w.roots))
			for root := range w.roots {
				roots = append(roots, root)
			}
			w.mu.Unlock()
			for _, root := range roots {
				changed(root)
			}
		}
	}
}

func (w *Watcher) set(running bool) {
	w.mu.Lock()
	w.running = running
	w.mu.Unlock()
}

func (w *Watcher) event(e fsnotify.Event, changed func(root string)) {
	dir := filepath.Dir(e.Name)
	w.mu.Lock()
	if dir == w.own {
		if seen := w.waiting[e.Name]; seen != nil && e.Has(fsnotify.Create) {
			close(seen)
			delete(w.waiting, e.Name)
		}
		w.mu.Unlock()
		return
	}
	roots := slices.Clone(w.dirs[dir])
	if own, ok := w.dirs[e.Name]; ok { // the directory itself
		roots = append(roots, own...)
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			w.drop(e.Name)
		}
	}
	w.mu.Unlock()
	if e.Op == fsnotify.Chmod || scratch(e.Name) {
		return
	}
	slices.Sort(roots)
	for _, root := range slices.Compact(roots) {
		changed(root)
	}
}

// drop forgets a directory that is gone, with those below it: their watches say nothing about the old paths.
func (w *Watcher) drop(path string) {
	shrunk := map[string]bool{}
	for dir, roots := range w.dirs {
		if dir != path && !strings.HasPrefix(dir, path+"/") {
			continue
		}
		delete(w.dirs, dir)
		_ = w.events.Remove(dir) // it may be gone
		for _, root := range roots {
			shrunk[root] = true
		}
	}
	for root := range shrunk {
		w.roots[root] = slices.DeleteFunc(w.roots[root], func(dir string) bool { return len(w.dirs[dir]) == 0 })
	}
}

// scratch reports whether a name is one of those that editors and programs make for a moment.
func scratch(name string) bool {
	base := filepath.Base(name)
	return strings.HasSuffix(base, "~") || strings.HasSuffix(base, ".swp") || strings.HasSuffix(base, ".log")
}
