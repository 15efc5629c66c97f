package supervisor

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// The filter cannot read addresses, because they are in the memory of the command, where another thread may change them
// after the check. The helper therefore makes the call for the command: it copies the address and the data once, checks
// the copy, and connects or sends with a duplicate of the command's socket.

const (
	notifRecv  = 0xc050_2100
	notifSend  = 0xc018_2101
	notifValid = 0x4008_2102

	maxAsked    = 256       // requests that are handled at one time
	maxAddress  = 128       // bytes of a sockaddr
	maxSent     = 256 << 10 // bytes of one message; a longer one is sent in parts, or refused
	maxMessages = 64        // messages of one sendmmsg
	maxPieces   = 1024      // pieces of one message
)

// notif is struct seccomp_notif.
type notif struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

func ioctl(fd int, what uintptr, arg unsafe.Pointer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), what, uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

// answerRequests answers requests of the filter until there are no more.
func answerRequests(fd int, g *Guard, t *tried) {
	busy := make(chan struct{}, maxAsked)
	for {
		n := &notif{}
		err := ioctl(fd, notifRecv, unsafe.Pointer(n))
		if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ENOENT) {
			continue // ENOENT: the thread that asked is gone
		}
		if err != nil {
			return
		}
		if g.None {
			r := response{id: n.id}
			if n.nr == syscall.SYS_SOCKET {
				t.flags.Or(socketOf(n.args[0], n.args[1]))
				r.error = -int32(syscall.EPERM)
			} else {
				t.flags.Or((&asked{notif: n, listener: fd, guard: g, tried: t}).triesRename())
				r.flags = notifContinue
			}
			_ = ioctl(fd, notifSend, unsafe.Pointer(&r)) // the thread that asked may be gone
			continue
		}
		busy <- struct{}{}
		go func() { // limited by busy; connecting may take minutes
			defer func() { <-busy }()
			val, err := (&asked{notif: n, listener: fd, guard: g}).makeCall()
			r := response{id: n.id, val: val}
			if err != nil {
				r.val, r.error = 0, -int32(errnoOf(err)) //nolint:gosec // error numbers are small
			}
			_ = ioctl(fd, notifSend, unsafe.Pointer(&r)) // the thread that asked may be gone
		}()
	}
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return syscall.EPERM
}

// asked is a system call that the command wants to make.
type asked struct {
	*notif

	listener int
	guard    *Guard
	tried    *tried
	process  int // pidfd of the process
}

// makeCall makes the call.
func (a *asked) makeCall() (int64, error) {
	var err error
	if a.process, err = a.openProcess(); err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(a.process) }() // only a handle
	sock, err := a.duplicateFile(int(int32(a.args[0])))
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(sock) }() // a duplicate
	switch a.nr {
	case syscall.SYS_CONNECT:
		return a.connectSocket(sock)
	case syscall.SYS_SENDTO:
		return a.sendTo(sock)
	case syscall.SYS_SENDMSG:
		n, err := a.sendMsg(sock, uintptr(a.args[1]), int(a.args[2]))
		return int64(n), err
	case sysSendmmsg:
		return a.sendMany(sock)
	default:
		return 0, syscall.EPERM
	}
}

// openProcess returns a pidfd of the process to which the asking thread belongs.
func (a *asked) openProcess() (int, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(int(a.pid)) + "/status")
	if err != nil {
		return -1, syscall.ESRCH
	}
	words := splitFields(textAfter(string(raw), "\nTgid:"))
	if len(words) == 0 {
		return -1, syscall.ESRCH
	}
	pid, err := strconv.Atoi(words[0])
	if err != nil {
		return -1, syscall.ESRCH
	}
	fd, err := systemCall(sysPidfdOpen, uintptr(pid), 0)
	return int(fd), err
}

// checkWaiting returns an error unless the thread still waits for the answer. What was read is then its own, and not
// that of a later process with the same number.
func (a *asked) checkWaiting() error {
	id := a.id
	return ioctl(a.listener, notifValid, unsafe.Pointer(&id))
}

// duplicateFile duplicates an open file of the process.
func (a *asked) duplicateFile(fd int) (int, error) {
	dup, err := systemCall(sysPidfdGetfd, uintptr(a.process), uintptr(fd), 0)
	if err != nil {
		return -1, err
	}
	if err := a.checkWaiting(); err != nil {
		_ = syscall.Close(int(dup))
		return -1, err
	}
	return int(dup), nil
}

// readMemory copies from the memory of the process.
func (a *asked) readMemory(at uintptr, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	buf := make([]byte, n)
	local := [2]uintptr{uintptr(unsafe.Pointer(&buf[0])), uintptr(n)}
	remote := [2]uintptr{at, uintptr(n)}
	got, _, errno := syscall.Syscall6(sysReadv, uintptr(a.pid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	runtime.KeepAlive(buf)
	if errno != 0 || int(got) != n {
		return nil, syscall.EFAULT
	}
	return buf, a.checkWaiting()
}

// writeMemory writes to the memory of the process.
func (a *asked) writeMemory(at uintptr, b []byte) error {
	local := [2]uintptr{uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))}
	remote := [2]uintptr{at, uintptr(len(b))}
	_, _, errno := syscall.Syscall6(sysWritev, uintptr(a.pid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	runtime.KeepAlive(b)
	if errno != 0 {
		return errno
	}
	return nil
}

// readAddress reads and checks an address.
func (a *asked) readAddress(at uintptr, n int, sends bool) ([]byte, error) {
	if n < 2 || n > maxAddress {
		return nil, syscall.EINVAL
	}
	b, err := a.readMemory(at, n)
	if err != nil {
		return nil, err
	}
	return b, a.checkAddress(b, sends)
}

// checkAddress returns an error unless an address may be reached. AF_UNSPEC ends a connection, but when
// sending, the kernel takes it for IPv4.
func (a *asked) checkAddress(b []byte, sends bool) error {
	refused := syscall.EACCES
	port := func() int { return int(b[2])<<8 | int(b[3]) }
	switch int(b[0]) | int(b[1])<<8 {
	case familyNone:
		if !sends {
			return nil
		}
	case familyUnix:
		// a path cannot lead out of the root, but names without a path are shared with everybody
		if len(b) > 2 && b[2] != 0 {
			return nil
		}
	case familyIPv4:
		if len(b) >= 8 && a.guard.Allows(b[4:8], port()) {
			return nil
		}
	case familyIPv6:
		if len(b) >= 24 && a.guard.Allows(b[8:24], port()) {
			return nil
		}
	case familyNetlink:
		if len(b) >= 8 && b[4]|b[5]|b[6]|b[7] == 0 { // the kernel
			return nil
		}
	}
	return refused
}

// localPath converts the relative path of a socket so that it works for us, because the
// working directory is the command's.
func (a *asked) localPath(b []byte) (local []byte, done func(), err error) {
	done = func() {}
	if int(b[0])|int(b[1])<<8 != familyUnix || len(b) < 3 || b[2] == '/' {
		return b, done, nil
	}
	fd, err := syscall.Open("/proc/"+strconv.Itoa(int(a.pid))+"/cwd", oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, done, syscall.EACCES
	}
	done = func() { _ = syscall.Close(fd) }
	name := "/proc/self/fd/" + strconv.Itoa(fd) + "/" + untilNull(string(b[2:]))
	if len(name) > 107 {
		done()
		return nil, func() {}, syscall.ENAMETOOLONG
	}
	return append(append([]byte{b[0], b[1]}, name...), 0), done, nil
}

func (a *asked) connectSocket(sock int) (int64, error) {
	b, err := a.readAddress(uintptr(a.args[1]), int(int32(a.args[2])), false)
	if err != nil {
		return 0, err
	}
	b, done, err := a.localPath(b)
	if err != nil {
		return 0, err
	}
	defer done()
	_, _, errno := syscall.Syscall(syscall.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return 0, nil
}
