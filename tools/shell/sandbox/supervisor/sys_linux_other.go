//go:build linux && !amd64 && !arm64

package supervisor

// There is no filter for other processors, so these calls are never used.
const (
	sysSeccomp  = ^uintptr(0)
	sysReadv    = ^uintptr(0)
	sysWritev   = ^uintptr(0)
	sysSendmmsg = -1
)
