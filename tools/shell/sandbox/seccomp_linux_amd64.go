package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_X86_64

// x32Bit marks the calls of the x32 mode, which have the same architecture and other numbers.
const x32Bit = 0x4000_0000

func archFilter() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1},
		bpf.RetConstant{Val: retMissing},
	}
}

func archRefused() []uint32 {
	return []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL,
		unix.SYS_CREATE_MODULE,
	}
}

// archModes returns older calls that set a mode, with the argument that contains it.
func archModes() map[uint32]uint32 {
	return map[uint32]uint32{unix.SYS_CHMOD: 1, unix.SYS_CREAT: 1, unix.SYS_MKNOD: 1, unix.SYS_OPEN: 2}
}

// archRenames returns older calls that rename.
func archRenames() []uint32 { return []uint32{unix.SYS_RENAME} }

// archOpenFlags returns which argument of an older open contains its flags.
func archOpenFlags(nr uint32) (arg uint32, opens bool) { return 1, nr == unix.SYS_OPEN }

// archPathCalls returns the older calls that name a file.
func archPathCalls() map[Verb][]pathCall {
	return map[Verb][]pathCall{
		Writes:  {{unix.SYS_OPEN, -1, 0}, {unix.SYS_CREAT, -1, 0}},
		Creates: {{unix.SYS_MKDIR, -1, 0}, {unix.SYS_MKNOD, -1, 0}, {unix.SYS_SYMLINK, -1, 1}, {unix.SYS_LINK, -1, 1}},
		Deletes: {{unix.SYS_UNLINK, -1, 0}, {unix.SYS_RMDIR, -1, 0}},
		Moves:   {{unix.SYS_RENAME, -1, 0}, {unix.SYS_RENAMEAT, 0, 1}},
		Alters: {
			{unix.SYS_CHMOD, -1, 0},
			{unix.SYS_CHOWN, -1, 0},
			{unix.SYS_LCHOWN, -1, 0},
			{unix.SYS_UTIME, -1, 0},
			{unix.SYS_UTIMES, -1, 0},
			{unix.SYS_FUTIMESAT, 0, 1},
		},
	}
}
