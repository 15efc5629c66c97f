package supervisor

import (
	"strconv"
	"sync/atomic"
	"syscall"
)

// A command on a layer may not do everything that it could do on its directory. What it was refused for that reason is
// noted here; the kernel refuses it, and a note decides nothing.

// notifContinue lets the kernel make the call.
const notifContinue = 1

// maxPath is the size of a buffer for a path, in bytes.
const maxPath = 4096

// socketOf returns the flag of Report.Tried for a socket. When a C library looks up who somebody is, it first asks a
// service of the machine that is hardly ever there; nearly every program does so, and that is none.
func socketOf(family, kind uint64) uint64 {
	const lookup = syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC | syscall.SOCK_NONBLOCK
	switch {
	case family == syscall.AF_INET || family == syscall.AF_INET6:
		return TriedInternet
	case family == syscall.AF_UNIX && kind == lookup:
		return 0
	default:
		return TriedSocket
	}
}

// tried is what the helper notes of a run on a layer.
type tried struct {
	layer int           // the directory below the layer; -1 = there is none
	flags atomic.Uint64 // of Report.Tried
}

// openLayer opens the directory below the layer of the plan, while its path still leads there.
func (t *tried) openLayer(g *Guard) (err error) {
	t.layer = -1
	if g == nil || g.Layer == "" {
		return nil
	}
	t.layer, err = syscall.Open(g.Layer, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	return wrapError("open what is below the layer", err)
}

// triesRename returns TriedRename if the call renames a directory that exists below the layer.
func (a *asked) triesRename() uint64 {
	if a.tried.layer < 0 {
		return 0
	}
	for _, name := range renamedPaths(a.nr, a.args) {
		if a.isBelowLayer(name.dir, name.path) {
			return TriedRename
		}
	}
	return 0
}

// named is a path of a call, relative to an open directory of the process.
type named struct {
	dir  int
	path uintptr
}

// isBelowLayer reports whether a name of the process is a directory that exists below the layer.
func (a *asked) isBelowLayer(dir int, at uintptr) bool {
	path, err := a.readText(at)
	if err != nil || path == "" {
		return false
	}
	from := "/proc/" + strconv.Itoa(int(a.pid)) + "/cwd"
	if dir != atFdcwd {
		from = "/proc/" + strconv.Itoa(int(a.pid)) + "/fd/" + strconv.Itoa(dir)
	}
	base, err := syscall.Open(from, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(base) }() // opened as a path
	fd, err := syscall.Openat(base, path, oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false // no directory
	}
	defer func() { _ = syscall.Close(fd) }() // opened as a path
	buf := make([]byte, maxPath)
	n, err := syscall.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf)
	inside := a.guard.Layer + "/"
	if err != nil || n <= len(inside) || string(buf[:len(inside)]) != inside {
		return false
	}
	low, err := syscall.Openat(
		a.tried.layer, string(buf[len(inside):n]), oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0,
	)
	if err != nil {
		return false
	}
	_ = syscall.Close(low) // opened as a path
	return true
}

// readText copies a text that ends with a zero from the memory of the process.
func (a *asked) readText(at uintptr) (string, error) {
	const page = 4096
	var all []byte
	for len(all) < maxPath {
		part, err := a.readMemory(at, int(page-at%page)) // the next page may not be there
		if err != nil {
			return "", err
		}
		for i, b := range part {
			if b == 0 {
				return string(append(all, part[:i]...)), nil
			}
		}
		all, at = append(all, part...), at+uintptr(len(part))
	}
	return "", syscall.ENAMETOOLONG
}
