package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// maxEntries limits the size of a snapshot's directory tree.
const maxEntries = 200_000

// sizeError means that a workspace is too large for a snapshot.
type sizeError struct{ text string }

func (e *sizeError) Error() string { return e.text }

// snapshotOptions say what a snapshot contains.
type snapshotOptions struct {
	root  string
	store string   // directory for the copies; "" = the system's directory for temporary files
	scope []string // globs; empty = everything
	// relative to the root; these paths are neither copied nor restored: commands cannot change them, but others can
	deny     map[string]bool
	maxBytes int64 // 0 = unlimited
}

// entry is one file, directory or link in the snapshot.
type entry struct {
	path   string // relative to the root
	mode   fs.FileMode
	mtime  time.Time
	size   int64
	target string   // for a symbolic link
	id     identity // to detect changes
	copied string   // name of the copy in the store; "" = contents were not copied
	fresh  bool     // modified so recently that its change time may not reveal a later change
}

// freshFor is longer than the resolution of the kernel's file times.
const freshFor = 100 * time.Millisecond

// snapshot is the state of a directory at one time: contents, modes, links, times and owners, but no extended
// attributes. It is not safe for concurrent use.
type snapshot struct {
	opts    snapshotOptions
	root    *os.Root
	mode    fs.FileMode // of the root itself
	store   string
	entries []entry // a directory comes before its contents
	byPath  map[string]int
	bytes   int64
}

// takeSnapshot copies what is in scope. It does not follow links and does not leave the root. The caller has to discard
// the snapshot.
func takeSnapshot(ctx context.Context, o snapshotOptions) (*snapshot, error) {
	root, err := os.OpenRoot(o.root)
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	s := &snapshot{opts: o, root: root, byPath: map[string]int{}}
	if err := s.takeSnapshot(ctx); err != nil {
		return nil, errors.Join(err, s.discardCopies())
	}
	return s, nil
}

func (s *snapshot) takeSnapshot(ctx context.Context) error {
	info, err := s.root.Stat(".")
	if err != nil {
		return fmt.Errorf("scan the working directory: %w", err)
	}
	s.mode = info.Mode()
	if err := s.scanDir(ctx, "."); err != nil {
		return err
	}
	store, err := os.MkdirTemp(s.opts.store, "zephbot-snapshot-")
	if err != nil {
		return fmt.Errorf("make the snapshot's directory: %w", err)
	}
	s.store = store
	inodes := map[identity]string{} // hard links share one copy
	for i := range s.entries {
		e := &s.entries[i]
		if !e.mode.IsRegular() || !s.inScope(e.path) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("copy files: %w", err)
		}
		if name, ok := inodes[e.id.inodeOnly()]; ok && e.id.links > 1 {
			e.copied = name
			continue
		}
		e.copied = strconv.Itoa(i)
		if err := s.copyOut(e); err != nil {
			return err
		}
		inodes[e.id.inodeOnly()] = e.copied
	}
	return nil
}

// scanDir adds everything below dir, and fails early when it is too much.
func (s *snapshot) scanDir(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("scan the working directory: %w", err)
	}
	names, err := s.listNames(dir)
	if err != nil {
		return fmt.Errorf("scan the working directory: %w", err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := s.root.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a background run removed it
		}
		if err != nil {
			return fmt.Errorf("scan the working directory: %w", err)
		}
		e := entry{path: path, mode: info.Mode(), mtime: info.ModTime(), size: info.Size(), id: identifyFile(info)}
		e.fresh = e.id.changedAfter(time.Now().Add(-freshFor))
		if e.mode&fs.ModeSymlink != 0 {
			if e.target, err = s.root.Readlink(path); err != nil {
				return fmt.Errorf("scan the working directory: %w", err)
			}
		}
		if err := s.countEntry(e); err != nil {
			return err
		}
		s.byPath[path] = len(s.entries)
		s.entries = append(s.entries, e)
		if info.IsDir() {
			if err := s.scanDir(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// countEntry adds an entry to the totals and compares them with the limits.
func (s *snapshot) countEntry(e entry) error {
	if len(s.entries) >= maxEntries {
		return &sizeError{fmt.Sprintf("the working directory has more than %d files", maxEntries)}
	}
	if e.mode.IsRegular() && s.inScope(e.path) {
		s.bytes += e.size
	}
	if s.opts.maxBytes > 0 && s.bytes > s.opts.maxBytes {
		return &sizeError{fmt.Sprintf("the working directory is larger than the %d bytes that are snapshotted at most",
			s.opts.maxBytes)}
	}
	return nil
}

// listNames returns the names in dir, without the directory for temporary files and without denied paths.
func (s *snapshot) listNames(dir string) ([]string, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		path := filepath.Join(dir, name)
		return path == tmpName || s.opts.deny[path]
	}), nil
}

// aboveDenied reports whether a denied path is inside path.
func (s *snapshot) aboveDenied(path string) bool {
	for d := range s.opts.deny {
		if strings.HasPrefix(d, path+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// inScope reports whether changes of path are rolled back.
func (s *snapshot) inScope(path string) bool {
	if len(s.opts.scope) == 0 {
		return true
	}
	slashed := filepath.ToSlash(path)
	for _, g := range s.opts.scope {
		if doublestar.MatchUnvalidated(g, slashed) {
			return true
		}
	}
	return false
}

// copyOut copies the contents of a file to the store.
func (s *snapshot) copyOut(e *entry) error {
	src, err := openRegular(s.root, e.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		e.copied = "" // a background run removed it first
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy a file: %w", err)
	}
	defer func() { _ = src.Close() }() // opened for reading
	dst, err := os.OpenFile(filepath.Join(s.store, e.copied), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copy a file: %w", err)
	}
	_, err = io.Copy(dst, io.LimitReader(src, e.size)) // the limit holds even if the file grows meanwhile
	if err = errors.Join(err, dst.Close()); err != nil {
		return fmt.Errorf("copy a file: %w", err)
	}
	return nil
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file for reading. Other kinds, such as a pipe, are an error and do not block.
func openRegular(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// discardCopies removes the copies.
func (s *snapshot) discardCopies() error {
	err := s.root.Close()
	if s.store != "" {
		err = errors.Join(err, os.RemoveAll(s.store))
	}
	if err != nil {
		return fmt.Errorf("discard the snapshot: %w", err)
	}
	return nil
}
