//go:build linux && (amd64 || arm64)

package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// What keeps a reading command (Spec.Reading) from changing anything:
//
//	files        read-only mounts in a root of its own; Landlock; without the root, the filter refuses what Landlock does
//	             not know: modes, owners, times and attributes
//	pipes        a named pipe can be opened for writing on a read-only mount; Landlock refuses it
//	flags        of files, by ioctl on a file that is open for reading: the filter knows the few harmless requests
//	sockets      the filter refuses all but pairs of streams
//	processes    a namespace of its own, or the filter refuses signals
//	locks        the filter refuses exclusive locks, leases, signals about files, and hints about their life
//	dumps        no crash starts the program of the machine that collects dumps
//	new calls    the filter knows none that are newer than itself
//
// The filter also tells the helper what a command tries. This never decides: the paths
// are in the memory of the command.

// openForWriting are the flags of open(2) with which a file may be changed or created.
const openForWriting = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY

// watchedCalls returns the calls of which a filter tells. Without a root of its own, a command could change the
// metadata of every file of this user, so those calls are refused.
func watchedCalls(root bool) []supervisor.WatchedCall {
	var list []supervisor.WatchedCall
	add := func(verb Verb, refuse unix.Errno, calls ...pathCall) {
		for _, c := range calls {
			list = append(list, supervisor.WatchedCall{
				Number: c.number, Verb: string(verb), Dir: c.dir, Path: c.path, Refuse: int(refuse),
			})
		}
	}
	var metadata unix.Errno
	if !root {
		metadata = unix.EROFS
	}
	old := archPathCalls()
	add(Writes, 0, append(old[Writes], pathCall{unix.SYS_OPENAT, 0, 1}, pathCall{unix.SYS_TRUNCATE, -1, 0})...)
	add(Creates, 0, append(old[Creates], pathCall{unix.SYS_MKDIRAT, 0, 1}, pathCall{unix.SYS_MKNODAT, 0, 1},
		pathCall{unix.SYS_SYMLINKAT, 1, 2}, pathCall{unix.SYS_LINKAT, 2, 3})...)
	add(Deletes, 0, append(old[Deletes], pathCall{unix.SYS_UNLINKAT, 0, 1})...)
	add(Moves, 0, append(old[Moves], pathCall{unix.SYS_RENAMEAT2, 0, 1})...)
	add(Alters, metadata, append(old[Alters], metadataCalls()...)...)
	add(Connects, unix.EACCES, pathCall{unix.SYS_SOCKET, -1, -1})
	return list
}

// pathCall is a system call with the indexes of the arguments that name a file, as in supervisor.WatchedCall.
type pathCall struct{ number, dir, path int }

// metadataCalls change modes, owners, times and attributes.
func metadataCalls() []pathCall {
	const setxattrat, removexattrat, fileSetattr = 463, 466, 469
	return []pathCall{
		{unix.SYS_FCHMOD, 0, -1},
		{unix.SYS_FCHMODAT, 0, 1},
		{unix.SYS_FCHMODAT2, 0, 1},
		{unix.SYS_FCHOWN, 0, -1},
		{unix.SYS_FCHOWNAT, 0, 1},
		{unix.SYS_UTIMENSAT, 0, 1},
		{unix.SYS_SETXATTR, -1, 0},
		{unix.SYS_LSETXATTR, -1, 0},
		{unix.SYS_FSETXATTR, 0, -1},
		{setxattrat, 0, 1},
		{unix.SYS_REMOVEXATTR, -1, 0},
		{unix.SYS_LREMOVEXATTR, -1, 0},
		{unix.SYS_FREMOVEXATTR, 0, -1},
		{removexattrat, 0, 1},
		{fileSetattr, 0, 1},
	}
}

// readOnly refuses what a reading command must not do, and tells of what it tries.
func (p *program) readOnly(o filterOptions) {
	p.answerAbove(newestCall, retMissing)
	for _, c := range watchedCalls(o.root) {
		nr := uint32(c.Number) //nolint:gosec // numbers of calls are small
		ret := uint32(retAsk)
		if !o.tells {
			ret = unix.SECCOMP_RET_ERRNO | uint32(c.Refuse) //nolint:gosec // as are numbers of errors
		}
		flags, opens := openFlags(nr)
		switch {
		case nr == unix.SYS_SOCKET:
			p.allowInternet(ret)
		case !o.tells && c.Refuse == 0: // the kernel decides
		case opens:
			p.answerWhen(nr, ret, test{arg: flags, cond: bpf.JumpBitsSet, val: openForWriting})
		default:
			p.answerCall(nr, ret)
		}
	}
	p.answerCall(unix.SYS_OPENAT2, retMissing) // its flags are in memory
	p.allowOnly(unix.SYS_IOCTL, 1, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOTTY),
		unix.TCGETS, unix.TIOCGPGRP, unix.TIOCGWINSZ, unix.TIOCINQ, fionbio, fioclex, fionclex,
		unix.FS_IOC_GETFLAGS, fsgetxattr, fiemap)
	p.answerWhen(unix.SYS_FLOCK, retRefuse, test{arg: 1, cond: bpf.JumpBitsSet, val: unix.LOCK_EX})
	for _, cmd := range []uint32{
		unix.F_SETOWN, setSignal, unix.F_SETOWN_EX, unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SET_RW_HINT,
		unix.F_SET_FILE_RW_HINT,
	} {
		p.refuseArgument(unix.SYS_FCNTL, 1, cmd)
	}
	p.keepDumpLimit()
	if !o.pid { // any process of this user is in reach
		for _, nr := range []uint32{
			unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
			unix.SYS_PIDFD_SEND_SIGNAL,
		} {
			p.answerCall(nr, retRefuse)
		}
	}
}

// Constants of the kernel that package unix does not have.
const (
	setSignal  = 10 // F_SETSIG
	fionbio    = 0x5421
	fionclex   = 0x5450
	fioclex    = 0x5451
	fsgetxattr = 0x801c581f // FS_IOC_FSGETXATTR: flags of a file
	fiemap     = 0xc020660b // FS_IOC_FIEMAP: where the data of a file is
)

// allowInternet returns ret for sockets of the internet and refuses all others silently: libraries try sockets of
// services of the machine for the names of users, and go on without.
func (p *program) allowInternet(ret uint32) {
	body := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.RetConstant{Val: ret},
	}
	//nolint:gosec // a few
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: uint8(len(body))})
	*p = append(*p, body...)
}

// allowOnly returns ret for a call unless its argument has one of the values.
func (p *program) allowOnly(nr, arg, ret uint32, values ...uint32) {
	tests := make([]test, len(values))
	for i, v := range values {
		tests[i] = test{arg: arg, cond: bpf.JumpEqual, val: v}
	}
	p.answerUnless(nr, ret, tests...)
}

// newestCall is the newest system call that this filter was written for (file_setattr, Linux 6.17). Later ones are
// missing for a reading command: one of them may change what no rule here knows of.
const newestCall = 469

// answerAbove returns ret for every call with a number above newest.
func (p *program) answerAbove(newest, ret uint32) {
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newest, SkipFalse: 1}, bpf.RetConstant{Val: ret})
}

// keepDumpLimit refuses to change the limit of dumps. The helper sets it so that a crash starts no program of the
// machine that collects dumps; with a limit of 0 it would.
func (p *program) keepDumpLimit() {
	p.refuseArgument(unix.SYS_SETRLIMIT, 0, unix.RLIMIT_CORE)
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_PRLIMIT64, SkipFalse: 8},
		bpf.LoadAbsolute{Off: offArgs + argSize, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.RLIMIT_CORE, SkipFalse: 5},
		bpf.LoadAbsolute{Off: offArgs + 2*argSize, Size: 4}, // the new limit, if there is one
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
		bpf.LoadAbsolute{Off: offArgs + 2*argSize + argSize/2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipFalse: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.LoadAbsolute{Off: offCall, Size: 4})
}

// refuseArgument refuses a call with a value of an argument, and leaves other calls of it to the next rule.
func (p *program) refuseArgument(nr, arg, value uint32) {
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 4},
		bpf.LoadAbsolute{Off: offArgs + argSize*arg, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipFalse: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.LoadAbsolute{Off: offCall, Size: 4})
}
