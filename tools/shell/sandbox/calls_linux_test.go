package sandbox_test

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// call is a system call made inside a sandbox: the arguments of perl's syscall and the error number it ends with.
type call struct{ name, args, want string }

func calls() []call {
	nr := func(args ...int) string {
		text := ""
		for i, a := range args {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprint(a)
		}
		return text
	}
	eperm, enosys := fmt.Sprint(int(unix.EPERM)), fmt.Sprint(int(unix.ENOSYS))
	return []call{
		{"ptrace", nr(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0), eperm},
		{"unshare", nr(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), eperm},
		{"clone into a user namespace", nr(unix.SYS_CLONE, unix.CLONE_NEWUSER|int(unix.SIGCHLD), 0, 0, 0, 0), eperm},
		{"clone3", nr(unix.SYS_CLONE3, 0, 0), enosys},
		{"bpf", nr(unix.SYS_BPF, 0, 0, 0), eperm},
		{"io_uring", nr(unix.SYS_IO_URING_SETUP, 1, 0), eperm},
		{"keyctl", nr(unix.SYS_KEYCTL, 0, 0, 0, 0, 0), eperm},
		{"userfaultfd", nr(unix.SYS_USERFAULTFD, 0), eperm},
		{"mount", nr(unix.SYS_MOUNT, 0, 0, 0, 0, 0), eperm},
		{"type into a terminal", nr(unix.SYS_IOCTL, 0, unix.TIOCSTI, 0), eperm},
		{"packet socket", nr(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0), eperm},
		{"other ioctls", nr(unix.SYS_IOCTL, 0, unix.TCGETS, 0), fmt.Sprint(int(unix.ENOTTY))},
		{"harmless", nr(unix.SYS_GETPID), "ok"},
	}
}
