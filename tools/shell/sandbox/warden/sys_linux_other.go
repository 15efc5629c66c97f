//go:build linux && !amd64 && !arm64

package warden

// There is no call filter for other processors, so nobody asks for these.
const (
	sysSeccomp  = ^uintptr(0)
	sysReadv    = ^uintptr(0)
	sysWritev   = ^uintptr(0)
	sysSendmmsg = -1
)
