package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limit is one resource limit of a command.
type limit struct {
	what       int
	soft, hard uint64
}

// resourceLimits are the limits of a command. RLIMIT_AS is not among them: it kills runtimes that reserve address space (Go, Java, Node).
func resourceLimits(l Limits) []limit {
	all := []limit{{unix.RLIMIT_CORE, 0, 0}}
	if l.FileSize > 0 {
		all = append(all, limit{unix.RLIMIT_FSIZE, uint64(l.FileSize), uint64(l.FileSize)})
	}
	if l.CPU > 0 {
		seconds := uint64((l.CPU + time.Second - 1) / time.Second)
		all = append(all, limit{unix.RLIMIT_CPU, seconds, seconds + 1}) // XCPU first, then KILL
	}
	if l.Files > 0 {
		all = append(all, limit{unix.RLIMIT_NOFILE, uint64(l.Files), uint64(l.Files)})
	}
	return all
}

// lower sets the soft limits of this process, for a command to inherit; back restores them.
func lower(limits []limit) (back func(), err error) {
	var before []limit
	back = func() {
		for _, b := range before {
			_ = syscall.Setrlimit(b.what, &syscall.Rlimit{Cur: b.soft, Max: b.hard}) // up to the hard limit is always allowed
		}
	}
	for _, l := range limits {
		var now syscall.Rlimit
		if err = syscall.Getrlimit(l.what, &now); err != nil {
			break
		}
		before = append(before, limit{l.what, now.Cur, now.Max})
		if err = syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: min(l.soft, now.Max), Max: now.Max}); err != nil {
			break
		}
	}
	if err != nil {
		back()
		return func() {}, fmt.Errorf("set resource limits: %w", err)
	}
	return back, nil
}

// processLimit bounds the tasks of the user, which is all that the kernel can count, with room for what runs besides the command. Root is not
// bound by it; the supervisor counts in any case.
func processLimit(l Limits) []limit {
	if l.Procs <= 0 || os.Getuid() == 0 {
		return nil
	}
	most := uint64(tasksOf(os.Getuid()) + 2*l.Procs + 64)
	return []limit{{unix.RLIMIT_NPROC, most, most}}
}

// harden sets the hard limits of a command that has just started, so that it cannot raise the soft ones.
func harden(pid int, limits []limit) error {
	for _, l := range limits {
		var now unix.Rlimit
		err := unix.Prlimit(pid, l.what, nil, &now)
		if err == nil {
			err = unix.Prlimit(pid, l.what, &unix.Rlimit{Cur: min(l.soft, now.Max), Max: min(l.hard, now.Max)}, nil)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it may be over already
			return fmt.Errorf("set resource limits: %w", err)
		}
	}
	return nil
}
