//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Both processors are little-endian: the low half of an argument comes first.
const (
	offCall = 0
	offArch = 4
	offArg0 = 16
	offArg1 = 24
)

// What the filter answers.
const (
	retAllow   = unix.SECCOMP_RET_ALLOW
	retRefuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retMissing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// newNamespaces are the flags of clone(2) that make a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// filterCalls loads the filter for the calling thread, which must not change, and all that it starts.
func filterCalls(network bool) error {
	raw, err := bpf.Assemble(filter(network))
	if err != nil {
		return fmt.Errorf("assemble the call filter: %w", err)
	}
	program := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		program[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))) //nolint:gosec // the kernel reads the struct
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("load the call filter: %w", errno)
	}
	return nil
}

// filter is the program: what it does not refuse is allowed.
func filter(network bool) []bpf.Instruction {
	prog := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retRefuse}, // calls of another processor mode have other numbers
		bpf.LoadAbsolute{Off: offCall, Size: 4},
	}
	prog = append(prog, archFilter()...)
	refuse := func(nr uint32, answer uint32) {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1}, bpf.RetConstant{Val: answer})
	}
	for _, nr := range refusedCalls() {
		refuse(nr, retRefuse)
	}
	refuse(unix.SYS_CLONE3, retMissing) // its flags are in memory, out of sight; C libraries fall back to clone
	// Each of these blocks loads an argument and ends in an answer.
	prog = append(prog,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipFalse: 4},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipFalse: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.RetConstant{Val: retAllow},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_IOCTL, SkipFalse: 5},
		bpf.LoadAbsolute{Off: offArg1, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1}, // types into a terminal
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipFalse: 1},
		bpf.RetConstant{Val: retRefuse},
		bpf.RetConstant{Val: retAllow},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
	)
	families := []uint32{unix.AF_UNIX}
	if network {
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	for _, f := range families {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipFalse: 1}, bpf.RetConstant{Val: retAllow})
	}
	return append(prog, bpf.RetConstant{Val: retRefuse})
}

// refusedCalls are refused whatever their arguments: they look into other processes, change the machine or the namespaces, reach the kernel's
// key ring, or do unseen what the filter looks at (io_uring opens sockets).
func refusedCalls() []uint32 {
	return append([]uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	}, archRefused()...)
}
