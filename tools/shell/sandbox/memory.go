package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// MachineMemory returns the memory of this machine in bytes, or of the container if that is less; 0 = unknown.
func MachineMemory() int64 {
	var total int64
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
				kib, err := strconv.ParseInt(f[1], 10, 64)
				if err == nil {
					total = kib << 10
				}
			}
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && n > 0 &&
			(total == 0 || n < total) {
			total = n
		}
	}
	return total
}
