package supervisor

// Calls that package syscall does not have.
const (
	sysSeccomp  = 317
	sysReadv    = 310 // process_vm_readv
	sysWritev   = 311 // process_vm_writev
	sysSendmmsg = 307
)
