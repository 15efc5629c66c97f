// Package footprint keeps the process small, and says how much of it turns may hold.
package footprint

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Concurrent turns may hold a quarter of the memory that the process may have, and at least this much.
const (
	turnsShare = 4
	turnsLeast = 64 << 20
)

// Where Linux reports how much memory there is: the limit of the control group, and the machine's.
const (
	groupLimit  = "/sys/fs/cgroup/memory.max"
	machineInfo = "/proc/meminfo"
)

// TurnMemory returns how many bytes the concurrent turns may hold; 0 = the amount of memory is unknown.
func TurnMemory() int64 {
	limit := debug.SetMemoryLimit(-1) // reads the limit without setting it
	for _, known := range []int64{kernelNumber(groupLimit, ""), kernelNumber(machineInfo, "MemTotal:") << 10} {
		if known > 0 {
			limit = min(limit, known)
		}
	}
	if limit == math.MaxInt64 {
		return 0
	}
	return max(turnsLeast, limit/turnsShare)
}

// kernelNumber reads a number from a file of the kernel: the first one in the line that begins with key. 0 = there is
// none.
func kernelNumber(file, key string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(line, key)
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			continue
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil { // "max": no limit
			return 0
		}
		return n
	}
	return 0
}
