package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a directory whose entries are reached without following a link and without leaving its file system.
type tree struct{ root *os.File }

const noLinks = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

func openTree(dir string) (*tree, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &tree{os.NewFile(uintptr(fd), dir)}, nil
}

func (t *tree) close() { _ = t.root.Close() } // opened for reading

// open opens what is at p. The last element is not followed either.
func (t *tree) open(p string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat2(int(t.root.Fd()), p, &unix.OpenHow{
			Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW), Resolve: noLinks, //nolint:gosec // not negative
		})
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) { // EAGAIN: something was renamed meanwhile
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "openat2", Path: p, Err: err}
		}
		return os.NewFile(uintptr(fd), p), nil
	}
}

// in calls do with the directory of p, opened as a path, and the name of p in it.
func (t *tree) in(p string, do func(dir int, name string) error) error {
	if p == "." {
		return do(int(t.root.Fd()), ".")
	}
	d, err := t.open(path.Dir(p), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = do(int(d.Fd()), path.Base(p))
	return errors.Join(err, d.Close())
}

// stat returns what is at p; ok is false if nothing is.
func (t *tree) stat(p string) (st unix.Stat_t, ok bool, err error) {
	err = t.in(p, func(dir int, name string) error {
		return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if missing(err) {
		return st, false, nil
	}
	if err != nil {
		return st, false, &fs.PathError{Op: "stat", Path: p, Err: err}
	}
	return st, true, nil
}

// missing reports whether an error says that nothing is at a path.
func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// names returns the sorted names in a directory.
func (t *tree) names(p string) ([]string, error) {
	d, err := t.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, d.Close())
}

func (t *tree) readlink(p string) (string, error) {
	buf := make([]byte, unix.PathMax)
	var n int
	err := t.in(p, func(dir int, name string) (err error) {
		n, err = unix.Readlinkat(dir, name, buf)
		return err
	})
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: p, Err: err}
	}
	return string(buf[:n]), nil
}

// file opens a regular file for reading. Other kinds are an error and do not block.
func (t *tree) file(p string) (*os.File, error) {
	f, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: p, Err: err}, f.Close())
	}
	return f, nil
}

// attributes returns the names of the extended attributes at p that do not belong to the form of overlays, and the
// value of those that do, by their name without the namespace.
func (t *tree) attributes(p string) (own map[string]string, others []string, err error) {
	err = t.in(p, func(dir int, name string) error {
		at := fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)
		buf := make([]byte, 4<<10)
		n, err := unix.Llistxattr(at, buf)
		if errors.Is(err, unix.ENOTSUP) {
			return nil
		}
		if err != nil {
			return err
		}
		for attr := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00") {
			short, overlay := strings.CutPrefix(attr, "user.overlay.")
			if !overlay {
				short, overlay = strings.CutPrefix(attr, "trusted.overlay.")
			}
			switch {
			case attr == "" || attr == "security.selinux": // every file has a label where there are labels
			case !overlay:
				others = append(others, attr)
			default:
				value := make([]byte, 1<<10)
				n, err := unix.Lgetxattr(at, attr, value)
				if err != nil {
					return err
				}
				if own == nil {
					own = map[string]string{}
				}
				own[short] = string(value[:n])
			}
		}
		return nil
	})
	if err != nil {
		err = &fs.PathError{Op: "listxattr", Path: p, Err: err}
	}
	return own, others, err
}

// read returns the state of what is at p. Bytes that are read are taken from budget.
func (t *tree) read(ctx context.Context, p string, st *unix.Stat_t, budget *int64) (State, error) {
	s := State{
		Mode: st.Mode & 0o7777, Time: st.Mtim.Nano(), UID: st.Uid, GID: st.Gid,
	}
	var err error
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		s.Kind = Directory
	case unix.S_IFLNK:
		s.Kind, s.Mode = Link, 0
		s.Content, err = t.readlink(p)
	case unix.S_IFREG:
		s.Kind, s.Size = File, st.Size
		if *budget -= st.Size; *budget < 0 {
			return s, ErrLarge
		}
		s.Content, err = t.hash(ctx, p)
	default:
		return s, &Refused{p, "neither a file, nor a directory, nor a link"}
	}
	return s, err
}

// hash returns the SHA-256 of a file.
func (t *tree) hash(ctx context.Context, p string) (string, error) {
	f, err := t.file(p)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, stoppable{ctx, f})
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// stoppable is a reader that fails when its context has ended.
type stoppable struct {
	ctx  context.Context //nolint:containedctx // it is no longer than a copy
	from io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.from.Read(p)
}
