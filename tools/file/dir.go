package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
)

// dir is an open directory with a known canonical path. Its methods take single names and follow no links.
type dir struct {
	f    *os.File
	path string
}

func (d dir) fd() int                     { return int(d.f.Fd()) }
func (d dir) close()                      { _ = d.f.Close() } // nothing was written through the handle
func (d dir) joinName(name string) string { return filepath.Join(d.path, name) }

// openRoot returns the os.Root of a canonical path, after checking that the path still leads to the same directory.
func (s *scope) openRoot(path string) (*os.Root, error) {
	if r, ok := s.roots[path]; ok {
		return r, nil
	}
	if resolved, err := filepath.EvalSymlinks(path); err != nil {
		return nil, err
	} else if resolved != path {
		return nil, refusedError("", reason.DirectoryReplaced)
	}
	r, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := sameAs(r, path); err != nil {
		_ = r.Close() // only its identity was needed
		return nil, err
	}
	s.roots[path] = r
	return r, nil
}

// sameAs returns an error unless an open root is the directory at path. If the kernel can report the path of a handle,
// that path is compared.
func sameAs(r *os.Root, path string) error {
	f, err := r.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	named, err := os.Readlink("/proc/self/fd/" + strconv.FormatUint(uint64(f.Fd()), 10))
	if err == nil && named == path {
		return nil
	}
	if err == nil {
		return refusedError("", reason.DirectoryMoved)
	}
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, there) {
		return refusedError("", reason.DirectoryMoved)
	}
	return nil
}

// dirAt opens the directory at a canonical path below root, component by component and without following links.
func (s *scope) dirAt(root, path string) (dir, error) {
	r, err := s.openRoot(root)
	if err != nil {
		return dir{}, err
	}
	f, err := r.Open(".")
	if err != nil {
		return dir{}, err
	}
	d := dir{f: f, path: root}
	for _, name := range pathComponents(root, path) {
		sub, err := d.openSub(name)
		d.close()
		if err != nil {
			return dir{}, err
		}
		d = sub
	}
	return d, nil
}

// openParent opens the directory that contains p.
func (s *scope) openParent(p place) (dir, error) {
	if p.isRoot() {
		return dir{}, errors.New("a root has no parent here")
	}
	return s.dirAt(p.root, p.parent())
}

// openSub opens a subdirectory of d.
func (d dir) openSub(name string) (dir, error) {
	f, err := d.openName(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return dir{}, err
	}
	return dir{f: f, path: d.joinName(name)}, nil
}

// openName opens a name in d. A link is an error (ELOOP); a FIFO or device does not block.
func (d dir) openName(name string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "openat", Path: d.joinName(name), Err: err}
		}
		return os.NewFile(uintptr(fd), d.joinName(name)), nil
	}
}

// statName returns the state of a name in d. ok is false when it does not exist.
func (d dir) statName(name string) (st unix.Stat_t, ok bool, err error) {
	err = unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return st, false, nil
	}
	if err != nil {
		return st, false, &fs.PathError{Op: "fstatat", Path: d.joinName(name), Err: err}
	}
	return st, true, nil
}

func fileKind(st unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }

// modeOf converts a mode to Go's form.
func modeOf(st unix.Stat_t) fs.FileMode {
	mode := fs.FileMode(st.Mode).Perm()
	switch fileKind(st) {
	case unix.S_IFREG:
		return mode
	case unix.S_IFDIR:
		return mode | fs.ModeDir
	case unix.S_IFLNK:
		return mode | fs.ModeSymlink
	case unix.S_IFIFO:
		return mode | fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return mode | fs.ModeSocket
	default:
		return mode | fs.ModeDevice
	}
}

// removeName removes a name from d.
func (d dir) removeName(name string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	if err := unix.Unlinkat(d.fd(), name, flags); err != nil {
		return &fs.PathError{Op: "unlinkat", Path: d.joinName(name), Err: err}
	}
	return nil
}

// renameTo moves a name from d to another directory of the same file system.
func (d dir) renameTo(name string, to dir, newName string) error {
	if err := unix.Renameat(d.fd(), name, to.fd(), newName); err != nil {
		return &os.LinkError{Op: "renameat", Old: d.joinName(name), New: to.joinName(newName), Err: err}
	}
	return nil
}

// makeDir creates a directory in d. It is not an error if it exists already.
func (d dir) makeDir(name string) error {
	err := unix.Mkdirat(d.fd(), name, 0o755)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return &fs.PathError{Op: "mkdirat", Path: d.joinName(name), Err: err}
	}
	return nil
}

// readLink returns the target of a link in d.
func (d dir) readLink(name string) (string, error) {
	buf := make([]byte, maxPath)
	n, err := unix.Readlinkat(d.fd(), name, buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlinkat", Path: d.joinName(name), Err: err}
	}
	return string(buf[:n]), nil
}

// syncNames makes the names in d survive a crash, if the file system supports it.
func (d dir) syncNames() error {
	if err := d.f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// makeDirs opens the directory at path below root and creates missing directories. made is the number of new ones.
func (s *scope) makeDirs(root, path string) (d dir, made int, err error) {
	d, err = s.dirAt(root, root)
	if err != nil {
		return dir{}, 0, err
	}
	for _, name := range pathComponents(root, path) {
		sub, err := d.openSub(name)
		if errors.Is(err, fs.ErrNotExist) {
			made++
			if err = d.makeDir(name); err == nil {
				sub, err = d.openSub(name)
			}
		}
		d.close()
		if err != nil {
			return dir{}, made, err
		}
		d = sub
	}
	return d, made, nil
}
