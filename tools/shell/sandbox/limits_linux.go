package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// resourceLimits returns the limits that the kernel enforces for each process of a command. RLIMIT_AS is not one of
// them: it kills runtimes that reserve address space (Go, Java, Node). The private memory of one process is limited to
// twice the total that the supervisor watches, because memory counts when it is reserved, before it is used.
func (l Limits) resourceLimits(can abilities) []supervisor.Rlimit {
	var all []supervisor.Rlimit
	add := func(what int, soft, hard uint64) {
		all = append(all, supervisor.Rlimit{What: what, Soft: soft, Hard: hard})
	}
	if l.FileSize > 0 {
		add(unix.RLIMIT_FSIZE, uint64(l.FileSize), uint64(l.FileSize))
	}
	if l.Memory > 0 {
		add(unix.RLIMIT_DATA, 2*uint64(l.Memory), 2*uint64(l.Memory))
	}
	if l.CPU > 0 {
		seconds := uint64((l.CPU + time.Second - 1) / time.Second)
		add(unix.RLIMIT_CPU, seconds, seconds+1) // XCPU first, then KILL
	}
	if l.Files > 0 {
		add(unix.RLIMIT_NOFILE, uint64(l.Files), uint64(l.Files))
	}
	if most := l.taskLimit(can); most > 0 {
		add(unix.RLIMIT_NPROC, most, most)
	}
	return all
}

// taskLimit returns the limit for threads of the user, which is all that the kernel can count: those in a user
// namespace, or else all of them, with room for what runs besides the command. It does not apply to root. The
// supervisor counts processes in any case.
func (l Limits) taskLimit(can abilities) uint64 {
	switch {
	case l.Procs <= 0, os.Getuid() == 0:
		return 0
	case can.user:
		return uint64(4*l.Procs + 64)
	default:
		return uint64(tasksOf(os.Getuid()) + 4*l.Procs + 64)
	}
}

// limitHit returns the kernel limit that ended a command, or a process in it whose exit status a shell passed on.
func (l Limits) limitHit(code int, sig syscall.Signal) Limit {
	ended := func(s syscall.Signal) bool { return sig == s || sig == 0 && code == 128+int(s) }
	switch {
	case l.CPU > 0 && ended(syscall.SIGXCPU):
		return LimitCPU
	case l.FileSize > 0 && ended(syscall.SIGXFSZ):
		return LimitFileSize
	default:
		return ""
	}
}

// tasksOf returns the number of threads of a user.
func tasksOf(uid int) int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	n := 0
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != uid {
			continue
		}
		threads, err := os.ReadDir(filepath.Join(dir, "task"))
		if err == nil {
			n += len(threads)
		}
	}
	return n
}
