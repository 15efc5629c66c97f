//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// Offsets in struct seccomp_data. Both processors are little-endian, so the lower half of an argument comes first.
const (
	offCall = 0
	offArch = 4
	offArgs = 16
	argSize = 8
)

// Results of the filter.
const (
	retAllow   = unix.SECCOMP_RET_ALLOW
	retAsk     = unix.SECCOMP_RET_USER_NOTIF
	retRefuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retMissing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retUnknown = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
)

// newNamespaces are the flags of clone(2) that create a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// ownerBits let anybody who starts a program run it with the rights of its owner.
const ownerBits = unix.S_ISUID | unix.S_ISGID

// isFilterable reports whether there is a filter for this processor.
func isFilterable() bool { return true }

// filterOptions is what the filter depends on.
type filterOptions struct {
	network Network
	unix    bool // Unix sockets; socket pairs are always allowed
	memory  bool // the command has its own shared memory
	tell    bool // the helper refuses sockets, and notes them
	pid     bool // the command has its own PID namespace, in which the helper is process 1
	root    bool // the command has its own root
	reading bool // nothing may be changed (Spec.Reading)
	tells   bool // the filter tells the helper what a reading command tries
}

// filterProgram returns the filter in the form that the kernel loads.
func filterProgram(o filterOptions) ([]byte, error) {
	raw, err := bpf.Assemble(compileFilter(o))
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	var out []byte
	for _, ins := range raw {
		out = binary.NativeEndian.AppendUint16(out, ins.Op)
		out = append(out, ins.Jt, ins.Jf)
		out = binary.NativeEndian.AppendUint32(out, ins.K)
	}
	return out, nil
}

// program collects blocks. Each starts with the number of the system call loaded, and leaves it loaded unless it
// returns a result.
type program []bpf.Instruction

// answerCall returns the same result for a call regardless of its arguments.
func (p *program) answerCall(nr, ret uint32) {
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1}, bpf.RetConstant{Val: ret})
}

// test is a condition on an argument.
type test struct {
	arg  uint32
	cond bpf.JumpTest
	val  uint32
	high bool // compare the upper half
}

// argOffset returns the offset of the argument in struct seccomp_data.
func (t test) argOffset() uint32 {
	off := offArgs + argSize*t.arg
	if t.high {
		off += argSize / 2
	}
	return off
}

// answerWhen returns ret for a call that passes one of the tests, and allows other calls of it.
func (p *program) answerWhen(nr, ret uint32, tests ...test) { p.decideCall(nr, ret, retAllow, tests) }

// answerUnless returns ret for a call that passes none of the tests, and allows other calls of it.
func (p *program) answerUnless(nr, ret uint32, tests ...test) { p.decideCall(nr, retAllow, ret, tests) }

func (p *program) decideCall(nr, passed, other uint32, tests []test) {
	var body []bpf.Instruction
	for _, t := range tests {
		body = append(body, bpf.LoadAbsolute{Off: t.argOffset(), Size: 4},
			bpf.JumpIf{Cond: t.cond, Val: t.val, SkipFalse: 1}, bpf.RetConstant{Val: passed})
	}
	body = append(body, bpf.RetConstant{Val: other})
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: uint8(len(body))}) //nolint:gosec // some tests
	*p = append(*p, body...)
}

// compileFilter returns the program. It allows everything that it does not refuse.
func compileFilter(o filterOptions) []bpf.Instruction {
	p := program{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retRefuse}, // calls of another processor mode have different numbers
		bpf.LoadAbsolute{Off: offCall, Size: 4},
	}
	p = append(p, archFilter()...)
	for _, nr := range refusedCalls() {
		p.answerCall(nr, retRefuse)
	}
	if o.reading {
		p.readOnly(o) // of two rules about a call, the first holds
	}
	if !o.memory {
		for _, nr := range sharedObjects() {
			p.answerCall(nr, retRefuse)
		}
	}
	// its flags are in memory, where the filter cannot read them; C libraries fall back to clone
	p.answerCall(unix.SYS_CLONE3, retMissing)
	p.answerWhen(unix.SYS_CLONE, retRefuse, test{arg: 0, cond: bpf.JumpBitsSet, val: newNamespaces})
	// these type into a terminal
	p.answerWhen(unix.SYS_IOCTL, retRefuse, test{arg: 1, cond: bpf.JumpEqual, val: unix.TIOCSTI},
		test{arg: 1, cond: bpf.JumpEqual, val: unix.TIOCLINUX})
	p.refuseOthers(o.pid)
	p.refusePairs(o)
	p.refuseModes()
	if o.tell {
		for _, nr := range append([]uint32{unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2}, archRenames()...) {
			p.answerCall(nr, retAsk)
		}
	}
	p.restrictSockets(o)
	return append(p, bpf.RetConstant{Val: retAllow})
}

// refusePairs refuses socket pairs that could send to a socket outside: a pair of datagrams sends to any address, and
// Unix sockets by path are in reach where a command has no root of its own.
func (p *program) refusePairs(o filterOptions) {
	if o.unix && !o.reading {
		return
	}
	body := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.LoadAbsolute{Off: offArgs + argSize, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK)},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.RetConstant{Val: retAllow},
	}
	//nolint:gosec // a few
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKETPAIR, SkipFalse: uint8(len(body))})
	*p = append(*p, body...)
}

// sharedObjects lists calls that make or use objects by which processes share data. Their numbers and names are those
// of the whole machine: a command that can make none could still use those of other processes of its user.
func sharedObjects() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN,
		unix.SYS_MQ_UNLINK,
	}
}

// refuseOthers refuses calls that affect other processes. Landlock and the namespace restrict signals; the filter only
// protects the helper and its parent. A process may set its own limits and its own priority.
func (p *program) refuseOthers(pid bool) {
	self := func(arg uint32) test { return test{arg: arg, cond: bpf.JumpEqual, val: 0} }
	for _, nr := range []uint32{
		unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM,
		unix.SYS_SCHED_SETATTR,
	} {
		p.answerUnless(nr, retRefuse, self(0))
	}
	for nr, which := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: 1} {
		p.answerWhen(nr, retRefuse, test{arg: 0, cond: bpf.JumpNotEqual, val: which},
			test{arg: 1, cond: bpf.JumpNotEqual, val: 0})
	}
	forbidden := []uint32{1} // the helper
	if !pid {
		const all = 0xffff_ffff
		forbidden = []uint32{
			all, 1, supervisor.PlaceSelf, supervisor.PlaceParent, supervisor.PlaceSelfGroup,
			supervisor.PlaceParentGroup,
		}
	}
	var tests []test
	for _, target := range forbidden {
		tests = append(tests, test{arg: 0, cond: bpf.JumpEqual, val: target})
	}
	for _, nr := range []uint32{
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO,
		unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN,
	} {
		p.answerWhen(nr, retRefuse, tests...)
	}
}

// refuseModes refuses to create programs that run with the rights of their owner.
func (p *program) refuseModes() {
	args := map[uint32]uint32{
		unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_OPENAT: 3,
		unix.SYS_MKNODAT: 2,
	}
	maps.Copy(args, archModes())
	for nr, arg := range args {
		tests := []test{{arg: arg, cond: bpf.JumpBitsSet, val: ownerBits}}
		if flags, opens := openFlags(nr); opens {
			p.whenCreating(nr, flags, arg)
			continue
		}
		p.answerWhen(nr, retRefuse, tests...)
	}
	p.answerCall(unix.SYS_OPENAT2, retMissing) // its mode is in memory
}

// whenCreating refuses an open that creates a file with ownerBits. Without O_CREAT, the mode is ignored and may have
// any value.
func (p *program) whenCreating(nr, flags, mode uint32) {
	*p = append(*p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 7},
		bpf.LoadAbsolute{Off: offArgs + argSize*flags, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow},
		bpf.LoadAbsolute{Off: offArgs + argSize*mode, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: ownerBits, SkipFalse: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.RetConstant{Val: retAllow},
	)
}

// openFlags returns which argument of an open contains its flags.
func openFlags(nr uint32) (arg uint32, opens bool) {
	if nr == unix.SYS_OPENAT {
		return 2, true
	}
	return archOpenFlags(nr)
}

// restrictSockets restricts which kinds of sockets exist and what they connect to. Socket pairs within one
// process tree are always allowed.
func (p *program) restrictSockets(o filterOptions) {
	var families []uint32
	if o.unix {
		families = append(families, unix.AF_UNIX)
	}
	inet := []uint32{unix.AF_INET, unix.AF_INET6}
	switch o.network {
	case NetworkOff:
		inet = nil
	case NetworkInternet:
		families = append(families, unix.AF_NETLINK)
		p.answerWhen(unix.SYS_SENDTO, retAsk, test{arg: 4, cond: bpf.JumpNotEqual},
			test{arg: 4, cond: bpf.JumpNotEqual, high: true})
		for _, nr := range []uint32{unix.SYS_CONNECT, unix.SYS_SENDMSG, unix.SYS_SENDMMSG} {
			p.answerCall(nr, retAsk)
		}
	default:
		families = append(families, unix.AF_NETLINK)
	}
	body := []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs, Size: 4}}
	for _, f := range families {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipFalse: 1}, bpf.RetConstant{Val: retAllow})
	}
	if len(inet) > 0 {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1}, bpf.RetConstant{Val: retRefuse})
		body = append(body, bpf.LoadAbsolute{Off: offArgs + 2*argSize, Size: 4})
		// others carry addresses in options
		for _, proto := range []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6} {
			body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: proto, SkipFalse: 1},
				bpf.RetConstant{Val: retAllow})
		}
		body = append(body, bpf.RetConstant{Val: retUnknown})
	} else {
		none := retRefuse
		if o.tell {
			none = retAsk
		}
		body = append(body, bpf.RetConstant{Val: none})
	}
	//nolint:gosec // some families
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: uint8(len(body))})
	*p = append(*p, body...)
}

// refusedCalls lists calls that are refused regardless of their arguments: they look into other processes, change the
// machine or the namespaces, use the kernel's key ring, or bypass the filter (io_uring opens sockets).
func refusedCalls() []uint32 {
	const openTreeAttr, quotactlFd = 467, 443
	return append([]uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
		unix.SYS_PROCESS_MRELEASE, unix.SYS_KCMP,
		unix.SYS_PIDFD_GETFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
		unix.SYS_IO_URING_REGISTER,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, openTreeAttr, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, quotactlFd, unix.SYS_SWAPON,
		unix.SYS_SWAPOFF, unix.SYS_ACCT,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME,
		unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	}, archRefused()...)
}
