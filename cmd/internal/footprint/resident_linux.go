package footprint

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// release releases the memory that an idle process does not need: the garbage of the heap, and the program's own pages
// of code and constants. Those pages remain in the page cache, from where they are mapped again when they are needed, but
// they no longer count as resident and the kernel can reclaim them first. Most of the pages that the
// start and a turn touch are not needed by timers. A failure only leaves the process larger.
func release() {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range cleanMappings(string(smaps), exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// cleanMappings lists the read-only mappings of a file in which every page is equal to the file. smaps is the text of
// /proc/PID/smaps. A page that differs (a relocation, a debugger's breakpoint) would be lost if it were dropped, so one
// such page excludes its mapping.
func cleanMappings(smaps, file string) []mapping {
	var list []mapping
	var now mapping
	candidate := false
	for line := range strings.Lines(smaps) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if from, to, ok := addresses(fields[0]); ok {
			now = mapping{from, to}
			candidate = (fields[1] == "r-xp" || fields[1] == "r--p") && strings.HasSuffix(line, " "+file)
		}
		if candidate && fields[0] == "Anonymous:" {
			candidate = false
			if fields[1] == "0" {
				list = append(list, now)
			}
		}
	}
	return list
}

// addresses parses "400000-1548000".
func addresses(text string) (from, to uintptr, ok bool) {
	first, last, ok := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(first, 16, strconv.IntSize)
	b, errB := strconv.ParseUint(last, 16, strconv.IntSize)
	return uintptr(a), uintptr(b), ok && errA == nil && errB == nil && a < b
}
