package supervisor

import (
	"strconv"
	"syscall"
)

// A command that forks without end fills the run queue faster than it can be counted. Unless the supervisor is served
// before its processes, it comes to its turn only when the machine has no process left to give.
const (
	firstServed = -20 // niceness of the helper, where it may raise it; sched(7)
	yields      = 10  // niceness that the command adds to what the helper had before
)

// goFirst lets all threads of the helper be served before the command. Only root may; for others it is enough that the
// command yields. It returns the niceness for the command.
func goFirst() int {
	before, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return yields
	}
	// The system call returns 20 minus the niceness, so that it is never negative.
	command := min(20-before+yields, 19)
	threads, err := readNames("/proc/self/task")
	if err != nil {
		return command
	}
	for _, t := range threads { // threads that begin later inherit it
		if tid, err := strconv.Atoi(t); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, tid, firstServed)
		}
	}
	return command
}

// lowerPriority lets what this thread starts be served after the helper.
func lowerPriority(nice int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice) }
