package sandbox_test

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestSwapAddress is an attacker that changes an address in its memory while the kernel, or who judges for it, reads
// it.
func TestSwapAddress(t *testing.T) {
	port, err := strconv.Atoi(os.Getenv(swapPort))
	if err != nil {
		t.Skip("runs only inside the sandbox of another test")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	addr := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port>>8 | port<<8&0xff00)} //nolint:gosec // network order
	word := (*uint32)(unsafe.Pointer(&addr.Addr))
	const allowed, forbidden = 0x0102_00c0, 0x0100_007f // 192.0.2.1, which nobody has, and 127.0.0.1
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			atomic.StoreUint32(word, forbidden)
			atomic.StoreUint32(word, allowed)
		}
	})
	data := []byte("x")
	for range 3000 {
		_, _, _ = unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), 1, 0, uintptr(unsafe.Pointer(&addr)), unsafe.Sizeof(addr))
	}
	stop.Store(true)
	wg.Wait()
}
