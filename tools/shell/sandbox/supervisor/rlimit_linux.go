package supervisor

import (
	"errors"
	"syscall"
	"unsafe"
)

// noDumps makes the kernel write no dump of this process and of those that it starts, and start no program that
// collects dumps. This is what a limit of 1 byte means; with 0, such a program is started.
func noDumps() error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &now); err != nil {
		return wrapError("read the limit of dumps", err)
	}
	most := min(1, now.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		return wrapError("set the limit of dumps", err)
	}
	return nil
}

// lowerLimits lowers the soft limits of this process, so that a command inherits them; back restores them.
func lowerLimits(limits []Rlimit) (back func(), err error) {
	var before []Rlimit
	back = func() {
		for _, b := range before {
			// raising a soft limit up to the hard limit is always allowed
			_ = syscall.Setrlimit(b.What, &syscall.Rlimit{Cur: b.Soft, Max: b.Hard})
		}
	}
	for _, l := range limits {
		var now syscall.Rlimit
		if err = syscall.Getrlimit(l.What, &now); err != nil {
			break
		}
		before = append(before, Rlimit{What: l.What, Soft: now.Cur, Hard: now.Max})
		if err = syscall.Setrlimit(l.What, &syscall.Rlimit{Cur: min(l.Soft, now.Max), Max: now.Max}); err != nil {
			break
		}
	}
	if err != nil {
		back()
		return func() {}, wrapError("set resource limits", err)
	}
	return back, nil
}

// hardenLimits sets the hard limits of a command that has just started, so that it cannot raise its soft limits.
func hardenLimits(pid int, limits []Rlimit) error {
	for _, l := range limits {
		var now syscall.Rlimit
		err := prlimit(pid, l.What, nil, &now)
		if err == nil {
			err = prlimit(pid, l.What, &syscall.Rlimit{Cur: min(l.Soft, now.Max), Max: min(l.Hard, now.Max)}, nil)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) { // it may have ended already
			return wrapError("set resource limits", err)
		}
	}
	return nil
}

func prlimit(pid, what int, set, get *syscall.Rlimit) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(what), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(get)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
