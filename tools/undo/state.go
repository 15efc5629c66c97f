package undo

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of what is at a path.
const (
	absent = ""
	file   = "f"
	folder = "d"
	link   = "l"
	other  = "o" // a pipe, a socket, a device
)

// state is what is at a path. The zero value is that nothing is there.
type state struct {
	Kind   string `json:"k,omitempty"`
	Mode   uint32 `json:"m,omitempty"` // permissions, of files and directories
	Size   int64  `json:"s,omitempty"` // of a file
	Time   int64  `json:"t,omitempty"` // of a file's last change, in nanoseconds
	Hash   string `json:"h,omitempty"` // of a file; "" = it was not read
	Target string `json:"l,omitempty"` // of a link
	// Lost says why the content is not kept: Large, Full, Names, Failed.
	Lost string `json:"x,omitempty"`
}

// same reports whether two states are equal, as far as they can be put back. Times count only where the contents were
// not read.
func (s state) same(o state) bool {
	if s.Kind != o.Kind || s.Mode != o.Mode || s.Target != o.Target {
		return false
	}
	if s.Kind != file {
		return true
	}
	if s.Hash == "" || o.Hash == "" {
		return s.Hash == o.Hash && s.Size == o.Size && s.Time == o.Time
	}
	return s.Hash == o.Hash
}

// identity tells whether a file is still the same and was not changed: the kernel sets the change time, and nobody else
// can.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

func identify(st *unix.Stat_t) identity {
	//nolint:unconvert // its type differs between systems
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
}

// freshFor is longer than the resolution of the kernel's file times: a file that was changed so recently may be changed
// again without a difference.
const freshFor = 100 * time.Millisecond

// fresh reports whether a file was changed a moment ago.
func (i identity) fresh(now time.Time) bool {
	return !time.Unix(i.ctime.Unix()).Before(now.Add(-freshFor))
}

// stateOf returns what a stat call says of a path.
func stateOf(st *unix.Stat_t) state {
	mode := uint32(st.Mode) & 0o7777       //nolint:unconvert // its type differs between systems
	switch uint32(st.Mode) & unix.S_IFMT { //nolint:unconvert // its type differs between systems
	case unix.S_IFREG:
		return state{Kind: file, Mode: mode, Size: st.Size, Time: st.Mtim.Nano()}
	case unix.S_IFDIR:
		return state{Kind: folder, Mode: mode}
	case unix.S_IFLNK:
		return state{Kind: link}
	default:
		return state{Kind: other}
	}
}

// lstat returns the state of a name in a directory; ok is false when it does not exist.
func lstat(dir *os.File, name string) (st unix.Stat_t, ok bool, err error) {
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		return st, true, nil
	case err == unix.ENOENT:
		return st, false, nil
	}
	return st, false, &fs.PathError{Op: "fstatat", Path: dir.Name() + "/" + name, Err: err}
}

// openat opens a name in a directory. A link is an error; a pipe or device does not block.
func openat(dir *os.File, name string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "openat", Path: dir.Name() + "/" + name, Err: err}
		}
		return os.NewFile(uintptr(fd), dir.Name()+"/"+name), nil
	}
}

func readlink(dir *os.File, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlinkat", Path: dir.Name() + "/" + name, Err: err}
	}
	return string(buf[:n]), nil
}
