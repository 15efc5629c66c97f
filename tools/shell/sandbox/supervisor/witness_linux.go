package supervisor

import (
	"errors"
	"path"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

// witness notes what a command tries to change. Its methods are safe for concurrent use.
type witness struct {
	mu    sync.Mutex
	tried []Attempt
}

// listAttempts returns what was tried.
func (w *witness) listAttempts() []Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Attempt(nil), w.tried...)
}

// watchCalls notes the calls that the filter tells until there are no more. The command waits meanwhile, so nothing is
// missing when it has ended.
func (w *witness) watchCalls(fd int, calls []WatchedCall) {
	for {
		n := &notif{}
		err := ioctl(fd, notifRecv, unsafe.Pointer(n))
		if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ENOENT) {
			continue // ENOENT: the thread that asked is gone
		}
		if err != nil {
			return
		}
		r := response{id: n.id, error: -int32(syscall.EPERM)}
		for i := range calls {
			c := &calls[i]
			if int32(c.Number) != n.nr { //nolint:gosec // numbers of calls are small
				continue
			}
			a := &asked{notif: n, listener: fd}
			w.noteAttempt(Attempt{Verb: c.Verb, Path: a.targetPath(c)})
			if r.error = -int32(c.Refuse); c.Refuse == 0 { //nolint:gosec // error numbers are small
				r.flags = notifContinue
			}
			break
		}
		_ = ioctl(fd, notifSend, unsafe.Pointer(&r)) // the thread that asked may be gone
	}
}

// noteAttempt adds an attempt that is not known yet.
func (w *witness) noteAttempt(a Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.tried { //nolint:modernize // package slices is initialised too late: see the package comment
		if known == a {
			return
		}
	}
	if len(w.tried) < maxAttempts {
		w.tried = append(w.tried, a)
	}
}

// targetPath returns the absolute path that a call is about; "" if it has none or it cannot be read.
func (a *asked) targetPath(c *WatchedCall) string {
	text := ""
	if c.Path >= 0 && a.args[c.Path] != 0 {
		var err error
		if text, err = a.readText(uintptr(a.args[c.Path])); err != nil {
			return ""
		}
	}
	if len(text) > 0 && text[0] == '/' {
		return path.Clean(text)
	}
	dir := "/proc/" + strconv.Itoa(int(a.pid)) + "/cwd"
	if c.Dir >= 0 && int32(a.args[c.Dir]) != atFdcwd { //nolint:gosec // a file number
		//nolint:gosec // a file number
		dir = "/proc/" + strconv.Itoa(int(a.pid)) + "/fd/" + strconv.Itoa(int(int32(a.args[c.Dir])))
	} else if text == "" {
		return ""
	}
	buf := make([]byte, maxPath)
	n, err := syscall.Readlink(dir, buf)
	if err != nil || n <= 0 || buf[0] != '/' {
		return ""
	}
	return path.Join(string(buf[:n]), text)
}
