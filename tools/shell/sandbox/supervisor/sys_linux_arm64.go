package supervisor

// Calls that package syscall does not have.
const (
	sysSeccomp  = 277
	sysReadv    = 270 // process_vm_readv
	sysWritev   = 271 // process_vm_writev
	sysSendmmsg = 269
)
