package supervisor

import (
	"runtime"
	"syscall"
	"unsafe"
)

func (a *asked) sendTo(sock int) (int64, error) {
	name, err := a.readAddress(uintptr(a.args[4]), int(int32(a.args[5])), true)
	if err != nil {
		return 0, err
	}
	size := a.args[2]
	if size > maxSent {
		size = maxSent
		if isDatagram(sock) {
			return 0, syscall.EMSGSIZE
		}
	}
	data, err := a.readMemory(uintptr(a.args[1]), int(size))
	if err != nil {
		return 0, err
	}
	n, err := a.sendMessage(sock, name, data, nil, int(a.args[3]))
	return int64(n), err
}

func isDatagram(sock int) bool {
	kind, err := syscall.GetsockoptInt(sock, syscall.SOL_SOCKET, syscall.SO_TYPE)
	return err != nil || kind != syscall.SOCK_STREAM
}

// sendMessage sends a message from our memory.
func (a *asked) sendMessage(sock int, name, data, control []byte, flags int) (int, error) {
	var msg syscall.Msghdr
	var iov syscall.Iovec
	if len(name) > 0 {
		local, done, err := a.localPath(name)
		if err != nil {
			return 0, err
		}
		defer done()
		msg.Name, msg.Namelen = &local[0], uint32(len(local)) //nolint:gosec // bounded
	}
	if len(data) > 0 {
		iov.Base = &data[0]
		iov.SetLen(len(data))
	}
	msg.Iov, msg.Iovlen = &iov, 1
	if len(control) > 0 {
		msg.Control = &control[0]
		msg.SetControllen(len(control))
	}
	n, _, errno := syscall.Syscall(syscall.SYS_SENDMSG, uintptr(sock), uintptr(unsafe.Pointer(&msg)),
		uintptr(flags|syscall.MSG_NOSIGNAL))
	runtime.KeepAlive(data)
	runtime.KeepAlive(control)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

const (
	headerSize = int(unsafe.Sizeof(syscall.Msghdr{}))
	pieceSize  = int(unsafe.Sizeof(syscall.Iovec{}))
)

// header is struct msghdr as it is in the memory of the command.
type header struct {
	name       uintptr
	nameLen    uint32
	_          uint32
	pieces     uintptr
	pieceCount uintptr
	control    uintptr
	controlLen uintptr
	flags      int32
	_          int32
}

// sendMsg executes sendmsg.
func (a *asked) sendMsg(sock int, at uintptr, flags int) (int, error) {
	raw, err := a.readMemory(at, headerSize)
	if err != nil {
		return 0, err
	}
	h := *(*header)(unsafe.Pointer(&raw[0]))
	var name []byte
	if h.name != 0 && h.nameLen > 0 {
		if name, err = a.readAddress(h.name, int(h.nameLen), true); err != nil {
			return 0, err
		}
	}
	data, err := a.gatherPieces(h, isDatagram(sock))
	if err != nil {
		return 0, err
	}
	control, done, err := a.copyControl(h)
	defer done()
	if err != nil {
		return 0, err
	}
	return a.sendMessage(sock, name, data, control, flags)
}

// gatherPieces copies the pieces of a message.
func (a *asked) gatherPieces(h header, whole bool) ([]byte, error) {
	if h.pieceCount > maxPieces {
		return nil, syscall.EMSGSIZE
	}
	raw, err := a.readMemory(h.pieces, int(h.pieceCount)*pieceSize)
	if err != nil {
		return nil, err
	}
	var data []byte
	for ; len(raw) >= pieceSize; raw = raw[pieceSize:] {
		piece := *(*struct{ base, size uintptr })(unsafe.Pointer(&raw[0]))
		room := maxSent - len(data)
		if piece.size > uintptr(room) {
			if whole {
				return nil, syscall.EMSGSIZE
			}
			piece.size = uintptr(room)
		}
		b, err := a.readMemory(piece.base, int(piece.size))
		if err != nil {
			return nil, err
		}
		data = append(data, b...)
	}
	return data, nil
}

// copyControl copies the control data of a message. Files in it are duplicated first.
func (a *asked) copyControl(h header) (b []byte, done func(), err error) {
	var files []int
	done = func() {
		for _, fd := range files {
			_ = syscall.Close(fd)
		}
	}
	if h.control == 0 || h.controlLen == 0 {
		return nil, done, nil
	}
	if h.controlLen > 8192 {
		return nil, done, syscall.ENOBUFS
	}
	if b, err = a.readMemory(h.control, int(h.controlLen)); err != nil {
		return nil, done, err
	}
	messages, err := syscall.ParseSocketControlMessage(b)
	if err != nil {
		return nil, done, syscall.EINVAL
	}
	for _, m := range messages {
		if m.Header.Level != syscall.SOL_SOCKET || m.Header.Type != syscall.SCM_RIGHTS {
			continue
		}
		for at := 0; at+4 <= len(m.Data); at += 4 { // Data points into b
			slot := (*int32)(unsafe.Pointer(&m.Data[at]))
			fd, err := a.duplicateFile(int(*slot))
			if err != nil {
				return nil, done, err
			}
			files = append(files, fd)
			*slot = int32(fd) //nolint:gosec // file numbers are small
		}
	}
	return b, done, nil
}

// sendMany executes sendmmsg.
func (a *asked) sendMany(sock int) (int64, error) {
	const size = headerSize + 8 // with the number of bytes sent
	count := min(a.args[2], maxMessages)
	for i := range count {
		at := uintptr(a.args[1]) + uintptr(i)*uintptr(size)
		n, err := a.sendMsg(sock, at, int(a.args[3]))
		if err == nil {
			sent := uint32(n) //nolint:gosec // bounded
			err = a.writeMemory(at+uintptr(headerSize), (*[4]byte)(unsafe.Pointer(&sent))[:])
		}
		if err != nil {
			if i > 0 {
				return int64(i), nil
			}
			return 0, err
		}
	}
	return int64(count), nil
}
