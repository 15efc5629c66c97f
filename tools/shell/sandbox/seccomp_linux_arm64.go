package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

func archFilter() []bpf.Instruction { return nil }

func archRefused() []uint32 { return nil }
