package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

func archFilter() []bpf.Instruction { return nil }

func archRefused() []uint32 { return nil }

func archModes() map[uint32]uint32 { return nil }

func archRenames() []uint32 { return nil }

func archOpenFlags(uint32) (uint32, bool) { return 0, false }

func archPathCalls() map[Verb][]pathCall {
	return map[Verb][]pathCall{Moves: {{unix.SYS_RENAMEAT, 0, 1}}}
}
