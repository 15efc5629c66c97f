package sandbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// probeTimeout limits one probe of the machine.
const probeTimeout = 30 * time.Second

// abilities are the kinds of confinement that the machine supports.
type abilities struct {
	user  bool // namespaces are created inside a user namespace
	pid   bool // processes of a command have a PID namespace of their own
	root  bool // a command has its own root and shared memory
	abi   int  // version of Landlock
	calls bool // seccomp
	guard bool // seccomp can ask the helper
	layer bool // this run is on a layer

	reason string // why something is missing
}

// machine caches the abilities for each helper. They do not change while the program runs, and a probe takes some
// milliseconds.
var machine = struct {
	sync.Mutex
	known map[string]abilities
}{known: map[string]abilities{}}

// learnAbilities returns the abilities of the machine. What could not be determined is probed again by the next call.
func learnAbilities(ctx context.Context, helper string) abilities {
	machine.Lock()
	defer machine.Unlock()
	if can, ok := machine.known[helper]; ok {
		return can
	}
	can, ok := exploreAbilities(ctx, helper)
	if ok {
		machine.known[helper] = can
	}
	return can
}

// exploreAbilities tries the strongest confinement first.
func exploreAbilities(ctx context.Context, helper string) (abilities, bool) {
	abi, calls := landlockABI(), isFilterable()
	admin := mayMount()
	var why string
	for _, can := range []abilities{
		{root: true, pid: true}, {root: true, pid: true, user: true}, {root: true}, {root: true, user: true}, {},
	} {
		if can.root && !can.user && !admin {
			continue
		}
		can.abi, can.calls, can.guard = abi, calls, calls
		r, err := askHelper(ctx, helper, can)
		if err == nil && r.Error != "" && can.guard { // perhaps only seccomp notification is missing
			can.guard = false
			r, err = askHelper(ctx, helper, can)
		}
		switch {
		case err != nil && !can.root:
			return abilities{reason: "the helper does not start: " + err.Error()}, false
		case err != nil:
			why = err.Error()
		case r.Error != "":
			why = r.Error
		case can.root && r.Held&supervisor.HeldRoot == 0, can.pid && r.Held&supervisor.HeldPIDs == 0:
			why = "they do not hold"
		default:
			return can.keepWorking(r, why), true
		}
	}
	return abilities{reason: why}, true
}

// keepWorking keeps what the probe found to work, and the reason for the rest.
func (can abilities) keepWorking(r *supervisor.Report, why string) abilities {
	var missing []string
	if r.Held&supervisor.HeldFiles == 0 {
		can.abi = 0
		missing = append(missing, "the kernel has no Landlock, or it is not enabled (lsm=landlock,…)")
	}
	if r.Held&supervisor.HeldCalls == 0 {
		can.calls, can.guard = false, false
		missing = append(missing, "the kernel has no seccomp filter, or there is none for this processor")
	}
	if !can.root && why != "" {
		missing = append(missing, "no namespaces: "+why)
	}
	can.reason = strings.Join(missing, "; ")
	return can
}

// askHelper lets a helper confine itself and report what works.
func askHelper(ctx context.Context, helper string, can abilities) (*supervisor.Report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec := Spec{Helper: helper, Dir: "/", Network: NetworkOff}
	if can.guard {
		spec.Network = NetworkInternet
	}
	p, err := makePlan(spec, can)
	if err != nil {
		return nil, err
	}
	h, err := startHelper(ctx, helper, supervisor.ModeProbe, p, can, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	defer h.close()
	late := time.AfterFunc(probeTimeout, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	r, err := h.readReport()
	if err != nil {
		return nil, errors.New("the helper gave no answer")
	}
	return r, nil
}

// Probe determines what the kernel enforces by confining a helper and checking the result. helper is as in Spec.
func Probe(ctx context.Context, helper string) Level {
	if helper == "" {
		return Level{Reason: reason.New(reason.SandboxHelper)}
	}
	return learnAbilities(ctx, helper).confinementLevel()
}

// confinementLevel describes the abilities.
func (can abilities) confinementLevel() Level {
	return Level{
		Landlock: can.abi, Seccomp: can.calls, Root: can.root, Processes: can.pid, Guard: can.guard,
		Unix: can.unixSockets(), Reason: reason.Plain(can.reason),
	}
}

// unixSockets reports whether a command may use Unix sockets. Those outside must be out of its reach, by path (its own
// root) and by name.
func (can abilities) unixSockets() bool { return !can.calls || can.root && can.abi >= scopingABI }

// scopingABI is the version of Landlock from which signals and names of sockets are limited to the domain.
const scopingABI = 6

// mayMount reports whether this process may create namespaces without a user namespace.
func mayMount() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// startAttributes returns how a helper is started.
func (can abilities) startAttributes() *syscall.SysProcAttr {
	attr := ownSession()
	if can.root {
		attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	}
	if can.pid {
		attr.Cloneflags |= syscall.CLONE_NEWPID
	}
	if can.user { // the helper maps its user itself
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		// the helper keeps these; the command does not get them
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SETGID}
		if can.layer { // an overlay works in a directory that it has closed to everybody
			attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_DAC_OVERRIDE)
		}
	}
	return attr
}
