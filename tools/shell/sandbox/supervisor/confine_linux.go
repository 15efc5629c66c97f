package supervisor

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// confineThread removes the rights that the plan does not grant from the calling thread and from what it
// starts. The caller must be locked to its thread. asks is the file from which to read requests of the
// filter; -1 when it makes none.
func confineThread(p *Plan) (asks int, err error) {
	asks = -1
	if err := prctl(prSetNoNewPrivs, 1); err != nil { // required by Landlock and seccomp
		return asks, wrapError("give up new privileges", err)
	}
	if p.ABI > 0 {
		if err := restrictPaths(p); err != nil {
			return asks, wrapError("apply Landlock", err)
		}
	}
	dropCapabilities(p.Keep)
	if len(p.Filter) == 0 {
		return asks, nil
	}
	asks, err = loadFilter(p)
	return asks, wrapError("load the call filter", err)
}

// restrictPaths applies the Landlock rules. A path that disappeared meanwhile needs none.
func restrictPaths(p *Plan) error {
	attr := [3]uint64{p.FS, p.Net, p.Scoped}
	size := uintptr(8)
	switch {
	case p.ABI >= 6:
		size = 24
	case p.ABI >= 4:
		size = 16
	}
	set, _, errno := syscall.Syscall(sysLandlockCreate, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return wrapError("make the rules", errno)
	}
	defer func() { _ = syscall.Close(int(set)) }() // the kernel has the rules, or restrict has failed
	for _, r := range p.Rules {
		if err := addRule(int(set), r); err != nil {
			return wrapError("grant "+r.Path, err)
		}
	}
	if _, err := systemCall(sysLandlockRestrict, set, 0); err != nil {
		return err
	}
	return nil
}

func addRule(set int, r Rule) error {
	fd, err := syscall.Open(r.Path, oPath|syscall.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }() // opened only as a path
	var attr [12]byte                        // struct landlock_path_beneath_attr is packed
	*(*uint64)(unsafe.Pointer(&attr[0])) = r.Access
	*(*int32)(unsafe.Pointer(&attr[8])) = int32(fd) //nolint:gosec // file numbers are small
	_, _, errno := syscall.Syscall6(sysLandlockAdd, uintptr(set), 1, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// dropCapabilities drops all capabilities except keep. It has no effect where there are none.
func dropCapabilities(keep uint64) {
	_, _ = systemCall(syscall.SYS_PRCTL, prCapAmbient, prCapAmbientClear, 0, 0, 0)
	for c := range uintptr(64) {
		if keep&(uint64(1)<<c) == 0 {
			_ = prctl(prCapbsetDrop, c)
		}
	}
	head := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var data [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.Syscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&head)),
		uintptr(unsafe.Pointer(&data)), 0); errno != 0 {
		return
	}
	for i := range data {
		part := uint32(keep >> (32 * i)) //nolint:gosec // one half
		data[i].effective &= part
		data[i].permitted &= part
		data[i].inheritable = 0
	}
	_, _, _ = syscall.Syscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data)), 0)
}

// sockFilter is struct sock_filter.
type sockFilter struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// loadFilter loads the seccomp program.
func loadFilter(p *Plan) (asks int, err error) {
	const size = int(unsafe.Sizeof(sockFilter{}))
	if len(p.Filter)%size != 0 || len(p.Filter)/size > 4096 {
		return -1, errors.New("it is no filter")
	}
	program := unsafe.Slice((*sockFilter)(unsafe.Pointer(&p.Filter[0])), len(p.Filter)/size)
	for i := range program {
		fillProcessID(&program[i].k)
	}
	prog := struct {
		n     uint16
		first *sockFilter
	}{uint16(len(program)), &program[0]} //nolint:gosec // bounded above
	if p.Guard == nil && len(p.Watched) == 0 {
		_, _, errno := syscall.Syscall(sysSeccomp, seccompSetFilter, 0, uintptr(unsafe.Pointer(&prog)))
		if errno != 0 {
			return -1, errno
		}
		return -1, nil
	}
	for _, flags := range []uintptr{seccompNewListener | seccompWaitKillable, seccompNewListener} {
		fd, _, errno := syscall.Syscall(sysSeccomp, seccompSetFilter, flags, uintptr(unsafe.Pointer(&prog)))
		if errno == 0 {
			return int(fd), nil
		}
		err = errno
	}
	return -1, err
}

// fillProcessID replaces a placeholder by the process id.
func fillProcessID(k *uint32) {
	switch *k {
	case PlaceSelf:
		*k = uint32(os.Getpid()) //nolint:gosec // positive
	case PlaceParent:
		*k = uint32(os.Getppid()) //nolint:gosec // not negative
	case PlaceSelfGroup:
		*k = uint32(-os.Getpid()) //nolint:gosec // as the kernel reads it
	case PlaceParentGroup:
		*k = uint32(-os.Getppid()) //nolint:gosec // as the kernel reads it
	}
}
