package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// tmpName is the directory for temporary files in the workspace. It is never part of a snapshot.
const tmpName = ".tmp"

// workspaceOf returns the canonical working directory of a session, and creates it if it does not exist.
func (r *Runner) workspaceOf(o tools.Origin) (string, error) {
	dir, err := r.opts.Workspace(o)
	if err != nil {
		return "", noWorkspace(err)
	}
	broken := func(err error) error {
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message:  "the working directory of this conversation cannot be used",
			Err:      fmt.Errorf("open workspace: %w", err),
		}
	}
	if !filepath.IsAbs(dir) {
		return "", broken(fmt.Errorf("%q is not absolute", dir))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", broken(err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", broken(err)
	}
	return dir, nil
}

func noWorkspace(err error) error {
	return &tools.Error{
		Category: tools.PermanentFailure, Message: "this conversation has no working directory",
		Err: fmt.Errorf("find workspace: %w", err),
	}
}

// tmpDir creates the directory for temporary files in ws. If a command has put something else in its place, the result
// is ws itself.
func (r *Runner) tmpDir(ws string) string {
	dir := filepath.Join(ws, tmpName)
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		r.tmp.Store(dir, nil)
	case !errors.Is(err, fs.ErrExist):
		return ws
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return ws
	}
	return dir
}

// tidy removes the directories for temporary files that were made and hold nothing.
func (r *Runner) tidy() {
	if !r.opts.Tidy {
		return
	}
	r.tmp.Range(func(dir, _ any) bool {
		_ = os.Remove(dir.(string)) //nolint:forcetypeassert // only texts are stored; one that holds files stays
		return true
	})
}

// barredPaths returns the denied paths that exist. It leaves out programs that a command in ws cannot
// change: commands may run those.
func (r *Runner) barredPaths(ws string) []string {
	var list []string
	for _, d := range r.opts.DeniedPaths {
		info, err := os.Lstat(d)
		if err != nil {
			continue
		}
		program := info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
		if program && !r.isChangeable(ws, sandbox.Canonical(d)) {
			continue
		}
		list = append(list, d)
	}
	return list
}

// isChangeable reports whether a command in ws could change the canonical path p.
func (r *Runner) isChangeable(ws, p string) bool {
	for _, root := range append([]string{ws}, r.opts.AllowedPaths...) {
		if rel, err := filepath.Rel(sandbox.Canonical(root), p); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// deniedInside returns the denied paths inside the canonical directory ws, relative to it.
func (r *Runner) deniedInside(ws string) map[string]bool {
	inside := map[string]bool{}
	for _, d := range r.opts.DeniedPaths {
		rel, err := filepath.Rel(ws, sandbox.Canonical(d))
		if err == nil && rel != "." && filepath.IsLocal(rel) {
			inside[rel] = true
		}
	}
	return inside
}

// locks are mutexes by name. A mutex that nobody holds or waits for is removed.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	free  chan struct{} // holds one token when free
	users int
}

// acquireLock locks name, or gives up when done is closed. The returned function unlocks it.
func (l *locks) acquireLock(done <-chan struct{}, name string) (release func(), ok bool) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[name]
	if k == nil {
		k = &lock{free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		l.held[name] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case <-k.free:
		return func() { k.free <- struct{}{}; leave() }, true
	case <-done:
		leave()
		return nil, false
	}
}
