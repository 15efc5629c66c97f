package undo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools"
)

// Reasons why a content is not kept, and so cannot be put back.
const (
	Large = "large" // the file is larger than is kept
	Full  = "full"  // there was no room for it
	Names = "names" // it has several names (hard links)
)

// scan looks at files.
type scan struct {
	*Store
	ctx    context.Context //nolint:containedctx // a scan lives as long as the call whose context it is
	home   *home
	keep   bool // contents are stored
	until  time.Time
	found  map[string]state
	spare  map[string]bool
	alone  bool  // what is in directories is not looked at (tools.Area)
	left   int64 // bytes that can still be kept
	stored int64 // bytes that were added to the store
	fresh  []string
}

func (s *Store) newScan(ctx context.Context, home *home, keep bool) *scan {
	c := &scan{
		Store: s, ctx: ctx, home: home, keep: keep, until: time.Now().Add(s.o.Limits.Time), found: map[string]state{},
		spare: map[string]bool{}, left: s.o.Limits.Call,
	}
	if keep {
		c.left = s.o.Room(ctx, s.o.Limits.Call)
	}
	return c
}

// all returns the states of everything in the areas, by absolute path. What does not exist is in it only if an area
// names it.
func (c *scan) all(areas []tools.Area) (map[string]state, error) {
	for _, a := range areas {
		for _, path := range a.Spare {
			c.spare[path] = true
		}
	}
	for _, a := range areas {
		c.alone = a.Alone
		for _, path := range a.Paths {
			if err := c.area(a.Root, path); err != nil {
				return nil, fmt.Errorf("look at files: %w", err)
			}
		}
	}
	return c.found, nil
}

// area looks at a path and everything below it, unless the area has its paths alone.
func (c *scan) area(root, path string) error {
	if path == root {
		dir, err := openRoot(root)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }() // opened for reading
		return c.dir(dir)
	}
	parent, err := dirAt(root, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		c.found[path] = state{}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // opened for reading
	return c.entry(parent, filepath.Base(path), true)
}

// dir looks at everything in a directory.
func (c *scan) dir(d *os.File) error {
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := c.entry(d, name, false); err != nil {
			return err
		}
	}
	return nil
}

// entry looks at a name in a directory. named says that it counts even if it does not exist.
func (c *scan) entry(d *os.File, name string, named bool) error {
	path := filepath.Join(d.Name(), name)
	if c.spare[path] || strings.HasPrefix(name, tempPrefix) {
		return nil
	}
	if err := c.within(); err != nil {
		return err
	}
	st, ok, err := lstat(d, name)
	if err != nil {
		return err
	}
	if !ok {
		if named {
			c.found[path] = state{}
		}
		return nil
	}
	now := stateOf(&st)
	switch now.Kind {
	case file:
		if err := c.content(d, name, path, &st, &now); err != nil {
			return err
		}
	case link:
		if now.Target, err = readlink(d, name); err != nil {
			return err
		}
	}
	c.found[path] = now
	if now.Kind != folder || c.alone {
		return nil
	}
	sub, err := openat(d, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }() // opened for reading
	return c.dir(sub)
}

// within reports whether the limits still hold.
func (c *scan) within() error {
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case len(c.found) >= c.o.Limits.Entries:
		return errMany
	case len(c.found)%256 == 255 && time.Now().After(c.until):
		return errSlow
	}
	return nil
}

// content adds the hash of a file to its state, and keeps its content.
func (c *scan) content(d *os.File, name, path string, st *unix.Stat_t, now *state) error {
	switch {
	case st.Nlink > 1:
		now.Lost = Names
	case st.Size > c.o.Limits.File:
		now.Lost = Large
		return nil
	case c.keep && st.Size > c.left:
		now.Lost = Full
	}
	if c.keep && now.Lost == "" {
		c.left -= st.Size
	}
	id := identify(st)
	hash, known := c.known.get(path, id)
	if known && (!c.keep || now.Lost != "" || c.home.has(hash)) {
		now.Hash = hash
		return nil
	}
	hash, bytes, err := c.read(d, name, id, c.keep && now.Lost == "")
	switch {
	case errors.Is(err, errChanging), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		now.Lost = Failed
		return nil
	case err != nil:
		return err
	}
	now.Hash = hash
	c.stored += bytes
	if !id.fresh(time.Now()) {
		c.known.set(path, id, hash)
	}
	return nil
}

// errChanging means that a file is being changed.
var errChanging = errors.New("the file is changing")

// read returns the hash of a file, which must be the one with an identity, and how many bytes were added to the store.
func (c *scan) read(d *os.File, name string, id identity, keep bool) (hash string, bytes int64, err error) {
	f, err := openat(d, name, unix.O_RDONLY, 0)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	content := io.LimitReader(f, id.size+1)
	if keep {
		var path string
		hash, path, bytes, err = c.home.put(content)
		if path != "" {
			c.fresh = append(c.fresh, path)
		}
	} else {
		hash, err = sum(content)
	}
	if err != nil {
		return "", 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", 0, err
	}
	if identify(&st) != id {
		return "", bytes, errChanging
	}
	return hash, bytes, nil
}

// mostSynced is how many new contents are flushed to the disk one by one.
const mostSynced = 32

// sync flushes what was stored to the disk. Many contents are left to the kernel: if the machine fails before it has
// written them, they are found damaged and are not put back.
func (c *scan) sync() error {
	if len(c.fresh) > mostSynced {
		return nil
	}
	for _, path := range c.fresh {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// openRoot opens an allowed directory. Its path must lead to it without links.
func openRoot(root string) (*os.File, error) {
	if real, err := filepath.EvalSymlinks(root); err != nil {
		return nil, err
	} else if real != root {
		return nil, fmt.Errorf("%s was replaced by a link", root)
	}
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	return os.NewFile(uintptr(fd), root), nil
}

// dirAt opens a directory below a root, name by name and without following links.
func dirAt(root, path string) (*os.File, error) {
	d, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	if !inside(root, path) {
		return nil, errors.Join(fmt.Errorf("%s is not in %s", path, root), d.Close())
	}
	for name := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(path, root), "/"), "/") {
		if name == "" {
			continue
		}
		sub, err := openat(d, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		_ = d.Close() // opened for reading
		if err != nil {
			return nil, err
		}
		d = sub
	}
	return d, nil
}

// index remembers the hashes of files that have not changed, so that they are not read again. It is safe for concurrent
// use. Its zero value is empty.
type index struct {
	mu    sync.Mutex
	files map[string]remembered
}

type remembered struct {
	id   identity
	hash string
}

// mostRemembered bounds the index. When it is full, it starts again.
const mostRemembered = 50_000

func (x *index) get(path string, id identity) (hash string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.files[path]
	return r.hash, ok && r.id == id
}

func (x *index) set(path string, id identity, hash string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.files == nil || len(x.files) >= mostRemembered {
		x.files = map[string]remembered{}
	}
	x.files[path] = remembered{id, hash}
}
