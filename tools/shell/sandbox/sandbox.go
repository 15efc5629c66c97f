// Package sandbox runs a command so that the kernel restricts what it can reach (Landlock, seccomp, resource limits),
// and so that every process it leaves behind ends with it.
//
// On Linux, the program starts itself again as its own helper, which does its work before main begins. The helper
// remains the parent of the command, adopts the processes that the command detaches, and ends everything when it is
// told to or when the program that started it is gone. Only the thread that starts the command is restricted, because
// Landlock, seccomp and capabilities belong to threads. Denied paths inside granted directories are covered by mounts
// that only the command sees. Without a helper, and on other systems, a command runs in its own process group and
// nothing is enforced.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
)

// Self is the path with which a program that links this package starts itself as the helper. It works even if the
// program's file was replaced meanwhile.
const Self = "/proc/self/exe"

// Default times of a Spec.
const (
	defaultGrace = 250 * time.Millisecond // between TERM and KILL (seed 003)
	// for children that outlive the command, such as tee in a process substitution
	defaultLinger = time.Second
)

// stuckAfter is how long killed processes may take to disappear before the call returns without them.
const stuckAfter = 5 * time.Second

// ErrUnavailable means that a run requires a sandbox and there is none.
var ErrUnavailable = errors.New("the kernel sandbox is not available")

// Limits of a run. Zero = unlimited.
type Limits struct {
	Procs    int           // processes at one time; above it, the run is ended
	Memory   int64         // bytes of all processes together, without file pages; above it, the run is ended
	FileSize int64         // bytes of the largest file that may be written
	Files    int           // open files of one process
	CPU      time.Duration // processor time of one process, rounded up to seconds
}

// Limit is the name of a limit that ended a run.
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
	Read   []string // readable and executable, in addition to the system's directories
	Write  []string // readable, executable and writable
	// Deny cannot be reached even inside Read and Write. Paths inside a grant are covered in the command's mount
	// namespace, which needs root or a user namespace. A path that cannot be covered is carved out: the kernel refuses
	// the mount, the path does not exist, or it contains a grant or Dir. The directories above a carved path, up to the
	// grant, can be listed, including names below the denied path, and nothing can be created in them. A covered file
	// that others replace or remove while the command runs loses its cover.
	Deny    []string
	Network Network
	// Overlay runs the command on a layer above Dir, and on others above the rest of Write; nil = on these themselves.
	// Network is off then, and there are no sockets at all. It needs Level.Root and Level.Guard; Start returns
	// ErrUnavailable without them.
	Overlay *Overlay
	// Reading makes it impossible to change anything: Write is only read, there is no socket, and files can be created
	// only in a directory of 64 MiB that is the command's $HOME and $TMPDIR and vanishes with it; without namespaces
	// there is no such directory. Network and larger Limits are ignored. A machine that cannot do this (Level.Reading)
	// refuses the run with ErrUnavailable.
	Reading bool
	Off     bool // no Landlock and no seccomp; limits and supervision remain
	Require bool // fail without Landlock and seccomp
	Limits  Limits

	Grace  time.Duration // between TERM and KILL; 0 = defaultGrace
	Linger time.Duration // for children that outlive the command; 0 = defaultLinger, negative = none

	// Stdin is the command's standard input; nil = /dev/null. The caller closes it, which is possible once Start has
	// returned.
	Stdin *os.File
}

// Overlay says where the changes of a command go instead of its directories. All are empty directories on
// one file system that is not itself an overlay. Upper is left with the changes in Dir, in the form of
// overlayfs: deleted entries are devices 0/0, and attributes named user.overlay.* belong to the form. Work
// and Beside are of no use afterwards.
type Overlay struct{ Upper, Work, Beside string }

// Network says what a command may reach.
type Network int

// Networks.
const (
	NetworkOff Network = iota // nothing
	// everything but this machine: no loopback, no link-local addresses, no metadata service of a cloud
	NetworkInternet
	NetworkAll // everything that this program can reach
)

// String returns the name of the network in the configuration.
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

// Status says how a run ended.
type Status struct {
	Code   int    // exit code; meaningless when Signal is set
	Signal string // the signal that ended the command, such as "killed"
	Left   int    // processes that outlived the command and were ended
	Stuck  bool   // a process could not be ended
	Hit    Limit  // the limit that ended it; "" = none
	// Vanished means that the helper was killed from outside, for example by the kernel when memory ran out. Everything
	// it had started was ended. What the command did until then is unknown.
	Vanished bool
	Err      error // why the command was not started

	// For a run on a layer: whether it asked for a socket of any kind or of the internet, all of which were refused;
	// whether it wanted to rename a directory that is below the layer, which overlays refuse; and a path in Write
	// outside Dir that it changed, which went to a layer too; "" = there is none.
	Sockets, Internet, Moves bool
	Elsewhere                string

	// Tried is what a Spec.Reading command would have changed outside of its own directory: the first 16 attempts, each
	// once. It says nothing about whether the command could do without.
	Tried []Attempt
	// Blind: the kernel does not tell what a Spec.Reading command tries.
	Blind bool
}

// Attempt is what a command tried although it may only read.
type Attempt struct {
	Verb Verb
	Path string // absolute; "" = unknown, or none
}

// Verb says what an Attempt would have done.
type Verb string

// Verbs of attempts.
const (
	Writes   Verb = "write"
	Creates  Verb = "create"
	Deletes  Verb = "delete"
	Moves    Verb = "move"
	Alters   Verb = "alter" // a mode, an owner, a time or an attribute
	Connects Verb = "connect"
)

// Why returns how the run ended, in words.
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

// Stop ends the command and everything it started: TERM, then KILL after the grace period. It returns immediately; Done
// reports the end.
func (p *Process) Stop() { p.once.Do(p.stop) }

// Done returns a channel that is closed when the run has ended, or when the rest of it cannot be ended (Status.Stuck).
// After Stop, it is always closed eventually.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status returns how the run ended. It must not be called before Done is closed.
func (p *Process) Status() Status { return p.status }

// Start runs a command. ctx limits only the start. The caller closes stdout and stderr.
func Start(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("start a command: nothing to run")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start a command: %w", err)
	}
	if spec.Grace <= 0 {
		spec.Grace = defaultGrace
	}
	if spec.Linger == 0 {
		spec.Linger = defaultLinger
	}
	spec.Linger = max(spec.Linger, 0)
	if spec.Overlay != nil {
		if spec.Off || spec.Helper == "" || runtime.GOOS != "linux" {
			return nil, fmt.Errorf("%w: a layer needs it", ErrUnavailable)
		}
		spec = spec.layeredSpec()
	}
	if spec.Helper == "" {
		if spec.Require || spec.Reading {
			return nil, fmt.Errorf("%w: this program is not set up as its own helper", ErrUnavailable)
		}
		return startPlain(ctx, spec, stdout, stderr)
	}
	return startHelped(ctx, spec, stdout, stderr)
}

// layeredSpec returns what a run on a layer may reach: of what it may write, only roots that are not inside each other.
func (s Spec) layeredSpec() Spec {
	s.Dir, s.Network = Canonical(s.Dir), NetworkOff
	roots := []string{s.Dir}
	for _, p := range s.Write {
		roots = append(roots, Canonical(p))
	}
	slices.Sort(roots)
	roots = slices.Compact(roots)
	s.Write = slices.DeleteFunc(slices.Clone(roots), func(p string) bool {
		return p != s.Dir && slices.ContainsFunc(roots, func(q string) bool {
			return strings.HasPrefix(p, strings.TrimSuffix(q, "/")+"/")
		})
	})
	return s
}

// Level says what the kernel enforces on this machine.
type Level struct {
	Landlock int  // ABI version that is enforced, at most 7; 0 = none
	Seccomp  bool // system calls are filtered
	// a command has its own root, shared memory and semaphores; what it must not change is read-only
	Root      bool
	Processes bool // a command sees only its own processes, and all of them end with their supervisor
	// a command can reach the internet without reaching this machine and its link (NetworkInternet)
	Guard  bool
	Unix   bool          // a command may use Unix sockets, because it cannot reach those outside
	Reason reason.Reason // why something is missing; none when nothing is
}

// Full reports whether files and system calls are both enforced.
func (l Level) Full() bool { return l.Landlock > 0 && l.Seccomp }

// Reading reports whether a command can be run so that it can only read (Spec.Reading). Without a root of its own, this
// needs a Landlock that knows of every way to change a file (ABI 3).
func (l Level) Reading() bool {
	return l.Seccomp && (l.Landlock >= readingABI || l.Root && l.Landlock > 0)
}

// readingABI is the version of Landlock from which it restricts truncating files.
const readingABI = 3

// String describes the level in English.
func (l Level) String() string { return l.Describe().String() }

// has returns the parts that are there.
func (l Level) has() []reason.Reason {
	var have []reason.Reason
	if l.Landlock > 0 {
		have = append(have, reason.Plain(fmt.Sprintf("Landlock ABI %d", l.Landlock)))
	}
	if l.Seccomp {
		have = append(have, reason.Plain("seccomp"))
	}
	if l.Root {
		have = append(have, reason.New(reason.SandboxRoot))
	}
	if l.Processes {
		have = append(have, reason.New(reason.SandboxProcesses))
	}
	return have
}

// Lacks returns the consequence of each missing part; nil if nothing is there, or everything.
func (l Level) Lacks() []reason.Reason {
	var lost []reason.Reason
	if l.Landlock > 0 && !l.Root {
		lost = append(lost, reason.New(reason.SandboxModes))
	}
	if l.Full() && !l.Processes {
		lost = append(lost, reason.New(reason.SandboxTable))
	}
	if l.Seccomp && !l.Guard {
		lost = append(lost, reason.New(reason.SandboxNetwork))
	}
	if l.Seccomp && !l.Unix {
		lost = append(lost, reason.New(reason.SandboxSockets))
	}
	if !l.Reading() && len(l.has()) > 0 {
		lost = append(lost, reason.New(reason.SandboxReading))
	}
	return lost
}

// Describe describes the level for people, with the consequence of each missing part.
func (l Level) Describe() reason.Reason {
	have, lost := l.has(), l.Lacks()
	text := reason.New(reason.Sandbox)
	switch {
	case l.Full() && len(lost) == 0:
		text = reason.New(reason.SandboxComplete)
	case len(have) > 0:
		text = reason.New(reason.SandboxPartial)
	}
	if len(have) == 0 {
		text = text.And(reason.New(reason.SandboxNone))
	} else {
		text = text.And(reason.New(reason.SandboxHas).With(have...))
	}
	if len(lost) > 0 {
		text = text.And(reason.New(reason.SandboxLacks).With(lost...))
	}
	if l.Reason.Known() {
		text = text.And(reason.New(reason.SandboxWhy).With(l.Reason))
	}
	return text
}
