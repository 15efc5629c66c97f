package shell

import (
	"io/fs"
	"syscall"
	"time"
)

// nonblock prevents opening a pipe from waiting for its other end.
const nonblock = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// identity tells whether a file is still the same and unmodified. The kernel sets the change time on every change, and
// nobody else can set it.
type identity struct {
	dev, ino   uint64
	links      uint64
	uid, gid   int
	ctime, ns  int64
	size       int64
	mtimeNanos int64
}

func identifyFile(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{uid: -1, gid: -1}
	}
	return identity{
		//nolint:unconvert // Nlink has another type on arm64
		dev: st.Dev, ino: st.Ino, links: uint64(st.Nlink), uid: int(st.Uid), gid: int(st.Gid),
		ctime: st.Ctim.Sec, ns: st.Ctim.Nsec, size: info.Size(), mtimeNanos: info.ModTime().UnixNano(),
	}
}

// inodeOnly returns the part that identifies the file.
func (i identity) inodeOnly() identity { return identity{dev: i.dev, ino: i.ino} }

// isUntouched reports whether info is the same file in the same state. The number of its names does not matter.
func (i identity) isUntouched(info fs.FileInfo) bool {
	now := identifyFile(info)
	return i.ino != 0 && now.inodeOnly() == i.inodeOnly() &&
		now.ctime == i.ctime && now.ns == i.ns && now.size == i.size &&
		now.mtimeNanos == i.mtimeNanos
}

// changedAfter reports whether the last change was after t.
func (i identity) changedAfter(t time.Time) bool { return time.Unix(i.ctime, i.ns).After(t) }
