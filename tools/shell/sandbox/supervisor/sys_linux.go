package supervisor

import (
	"errors"
	"syscall"
)

// Constants of the kernel that package syscall does not have. Calls from 400 on have the same number on all processors.
const (
	sysOpenTree         = 428
	sysMoveMount        = 429
	sysMountSetattr     = 442
	sysPidfdOpen        = 434
	sysPidfdGetfd       = 438
	sysLandlockCreate   = 444
	sysLandlockAdd      = 445
	sysLandlockRestrict = 446

	atFdcwd         = -100
	atEmptyPath     = 0x1000
	atRecursive     = 0x8000
	openTreeClone   = 1
	oPath           = 0x200000
	moveMountFEmpty = 0x4

	mountAttrRdonly = 1
	mountAttrNosuid = 2

	prSetDumpable      = 4
	prSetNoNewPrivs    = 38
	prCapbsetDrop      = 24
	prSetSubreaper     = 36
	prCapAmbient       = 47
	prCapAmbientClear  = 4
	capabilityVersion3 = 0x20080522

	seccompSetFilter    = 1
	seccompNewListener  = 1 << 3
	seccompWaitKillable = 1 << 5
)

// systemCall makes a system call and returns its error as a Go error.
func systemCall(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}

func prctl(option, arg uintptr) error {
	_, err := systemCall(syscall.SYS_PRCTL, option, arg)
	return err
}

// failed is an error with its operation. Package fmt is too large for a helper.
type failed struct {
	what string
	err  error
}

func (f *failed) Error() string { return f.what + ": " + f.err.Error() }
func (f *failed) Unwrap() error { return f.err }

func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return &failed{what: what, err: err}
}

// isLacking reports whether the kernel lacks what was requested, or does not permit it.
func isLacking(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, errMissing)
}

var errMissing = errors.New("not available")
