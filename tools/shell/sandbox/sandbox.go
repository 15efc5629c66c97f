// Package sandbox runs one command so that the kernel bounds what it may reach (Landlock, seccomp, resource limits) and
// so that every process it leaves behind ends with it.
//
// On Linux the program starts itself again as its own helper, which is done before main begins. The helper stays as the
// parent of the command, adopts what the command detaches, and ends it all when told to, or when the program that asked
// is gone. Rights are taken from the one thread that starts the command: Landlock, seccomp and capabilities belong to
// threads. Denied paths inside what is granted are covered by mounts that only the command sees. Without a helper, and
// on other systems, a command runs in a process group of its own and nothing is enforced.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"time"
)

// Self is the helper of a program that links this package: the program itself, also when its file was replaced
// meanwhile.
const Self = "/proc/self/exe"

// Times that are used when a Spec has none.
const (
	DefaultGrace = 250 * time.Millisecond // between TERM and KILL (seed 003)
	// for children that outlive the command, such as tee in a process substitution
	DefaultLinger = time.Second
)

// stuckAfter is how long killed processes get to vanish before the call ends without them.
const stuckAfter = 5 * time.Second

// ErrUnavailable is the error of a run that requires a sandbox where there is none.
var ErrUnavailable = errors.New("the kernel sandbox is not available")

// Limits bound a run. Zero = unlimited.
type Limits struct {
	Procs    int           // processes at one time; over it the run is ended
	Memory   int64         // bytes of all processes together, without the pages of files; over it the run is ended
	FileSize int64         // bytes of the largest file that may be written
	Files    int           // open files of one process
	CPU      time.Duration // processor time of one process, rounded up to seconds
}

// Limit names a limit that ended a run.
type Limit string

// Limits that can end a run.
const (
	LimitProcs    Limit = "processes"
	LimitMemory   Limit = "memory"
	LimitFileSize Limit = "file size"
	LimitCPU      Limit = "processor time"
)

// Spec says what to run and what it may reach.
type Spec struct {
	Helper string // how to start the helper: Self, or "" for a run without one
	Argv   []string
	Dir    string
	Env    []string
	Read   []string // may be read and executed, besides the system's own directories
	Write  []string // may be read, executed and changed
	// Deny is out of reach, also inside Read and Write. What is inside a grant is covered in a mount namespace of the
	// command's own, by root or in a user namespace. What cannot be covered (the kernel refuses, it does not exist, or
	// it holds a grant or Dir) is carved out: the directories above it inside the grant can be listed, names below what
	// is denied too, and nothing can be made in them. A covered file that others replace or remove while the command
	// runs loses its cover.
	Deny    []string
	Network Network
	Off     bool // no Landlock, no seccomp; limits and supervision stay
	Require bool // do not run without Landlock and seccomp
	Limits  Limits

	Grace  time.Duration // between TERM and KILL; 0 = DefaultGrace
	Linger time.Duration // for children that outlive the command; 0 = DefaultLinger, negative = none

	// Stdin is the command's standard input; nil = /dev/null. It is the caller's to close, and may be closed once Start
	// has returned.
	Stdin *os.File
}

// Forever is the Linger of a run that goes on as long as any of its processes does.
const Forever = time.Duration(math.MaxInt64)

// Network says what a command may reach.
type Network int

// Networks.
const (
	NetworkOff Network = iota // nothing
	// what is not this machine: no loopback, no link-local addresses, no metadata service of a cloud
	NetworkInternet
	NetworkAll // everything that the program that starts the command reaches
)

// String names the network as the configuration does.
func (n Network) String() string {
	switch n {
	case NetworkOff:
		return "off"
	case NetworkInternet:
		return "internet"
	default:
		return "all"
	}
}

// Status is how a run ended.
type Status struct {
	Code   int    // exit code; meaningless when Signal is set
	Signal string // the signal that ended the command, such as "killed"
	Left   int    // processes that outlived the command and were ended
	Stuck  bool   // a process could not be ended
	Hit    Limit  // the limit that ended it; "" = none
	// Vanished says that the helper was killed from outside, as the kernel does when memory runs out. Everything it had
	// started was ended; what the command did until then is unknown.
	Vanished bool
	Err      error // the command was not started
}

// Why says in words how the run ended.
func (s Status) Why() string {
	var why string
	switch {
	case s.Err != nil:
		return "not started: " + s.Err.Error()
	case s.Vanished:
		why = "its supervisor was killed from outside"
	case s.Hit != "":
		why = "stopped: over its limit of " + string(s.Hit)
	case s.Signal != "":
		why = "killed by signal: " + s.Signal
	default:
		why = fmt.Sprintf("exit code %d", s.Code)
	}
	if s.Stuck {
		why += "; a process could not be ended and may still run"
	}
	return why
}

// Process is a run. Its methods are safe for concurrent use.
type Process struct {
	once   sync.Once
	stop   func()
	done   chan struct{}
	wg     sync.WaitGroup
	status Status
}

// Stop ends the command and everything it started: TERM, then KILL after the grace. It returns at once; Done tells the
// end.
func (p *Process) Stop() { p.once.Do(p.stop) }

// Done is closed when the run has ended, or when what is left of it cannot be ended (Status.Stuck). It always comes
// after Stop.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status is how the run ended; it must not be called before Done is closed.
func (p *Process) Status() Status { return p.status }

// Start runs what spec says. The context bounds only the start. Stdout and stderr are the caller's to close.
func Start(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("start a command: nothing to run")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start a command: %w", err)
	}
	if spec.Grace <= 0 {
		spec.Grace = DefaultGrace
	}
	if spec.Linger == 0 {
		spec.Linger = DefaultLinger
	}
	spec.Linger = max(spec.Linger, 0)
	if spec.Helper == "" {
		if spec.Require {
			return nil, fmt.Errorf("%w: this program is not set up as its own helper", ErrUnavailable)
		}
		return startPlain(ctx, spec, stdout, stderr)
	}
	return startHelped(ctx, spec, stdout, stderr)
}

// Level is what the kernel enforces on this machine.
type Level struct {
	Landlock int  // ABI version that is enforced, at most 7; 0 = none
	Seccomp  bool // system calls are filtered
	// a command sees a root, shared memory and semaphores of its own; what it may not change is read-only
	Root      bool
	Processes bool   // a command sees no process but its own, and all of them end with their supervisor
	Guard     bool   // a command can have the internet without this machine and its link (NetworkInternet)
	Unix      bool   // a command may use Unix sockets, because those outside are out of its reach
	Reason    string // why something is missing; "" when nothing is
}

// Full says whether files and system calls are both enforced.
func (l Level) Full() bool { return l.Landlock > 0 && l.Seccomp }

// String says the level in words for people, with what each missing part means.
func (l Level) String() string {
	var have, lost []string
	if l.Landlock > 0 {
		have = append(have, fmt.Sprintf("Landlock ABI %d", l.Landlock))
	}
	if l.Seccomp {
		have = append(have, "seccomp")
	}
	if l.Root {
		have = append(have, "a root of its own")
	} else if l.Landlock > 0 {
		lost = append(lost, "modes, owners and times of files outside can be changed")
	}
	if l.Processes {
		have = append(have, "a process namespace")
	} else if l.Full() {
		lost = append(lost, "the processes of a command share the table of the machine")
	}
	if l.Seccomp && !l.Guard {
		lost = append(lost, `no network unless allow_network is "all"`)
	}
	if l.Seccomp && !l.Unix {
		lost = append(lost, "no Unix sockets")
	}
	text := "kernel sandbox: " + strings.Join(have, " + ")
	if len(have) == 0 {
		text = "kernel sandbox: none"
	}
	if len(lost) > 0 {
		text += "; but " + strings.Join(lost, ", ")
	}
	if l.Reason != "" {
		text += " (" + l.Reason + ")"
	}
	return text
}
