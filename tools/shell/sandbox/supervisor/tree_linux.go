package supervisor

import (
	"os"
	"strconv"
	"syscall"
)

// listMembers returns every process of the run except the helper: all of its PID namespace, or what is below it.
func (s *run) listMembers() []int {
	if !s.plan.PIDSpace {
		return Descendants(s.self)
	}
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != s.self {
			pids = append(pids, pid)
		}
	}
	return pids
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	_ = f.Close() // only read
	return names, err
}

// Descendants returns every process below pid, nearest first.
func Descendants(pid int) []int {
	var all []int
	seen := map[int]bool{pid: true}
	children := childFinder()
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children(queue[0]) {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
				queue = append(queue, c)
			}
		}
	}
	return all
}

// Children returns the children of pid.
func Children(pid int) []int { return childFinder()(pid) }

// childFinder returns a function that finds the children of a process.
func childFinder() func(int) []int {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil { // a kernel without CONFIG_PROC_CHILDREN
		table := readChildren()
		return func(pid int) []int { return table[pid] }
	}
	return childrenOf
}

// childrenOf asks the kernel for the children of all threads of pid.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := readNames(dir)
	if err != nil {
		return nil // it has ended meanwhile
	}
	var pids []int
	for _, t := range threads {
		raw, err := os.ReadFile(dir + "/" + t + "/children")
		if err != nil {
			continue
		}
		for _, f := range splitFields(string(raw)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// readChildren reads the whole process table and returns the children of each parent.
func readChildren() map[int][]int {
	table := map[int][]int{}
	names, err := readNames("/proc")
	if err != nil {
		return table
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		words := splitFields(afterLast(string(raw), ')')) // the name may contain blanks and parentheses
		if len(words) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(words[1]); err == nil {
			table[parent] = append(table[parent], pid)
		}
	}
	return table
}

// exceedsMemory reports whether the private memory of the processes, together with the shared memory of the run,
// exceeds limit bytes. File pages do not count, because the kernel reclaims them when necessary. Memory shared between
// processes counts once. This is expensive to find out, so it is checked only when it matters.
func exceedsMemory(limit uint64, pids []int, shared bool) bool {
	var files uint64
	if shared {
		var fs syscall.Statfs_t
		if syscall.Statfs("/dev/shm", &fs) == nil {
			files = (fs.Blocks - fs.Bfree) * uint64(fs.Bsize) //nolint:gosec,unconvert // type depends on the system
		}
	}
	most := files
	for _, pid := range pids {
		most += sumKilobytes(pid, "status", "\nRssAnon:", "\nRssShmem:")
	}
	if most <= limit {
		return false
	}
	sum := files
	for _, pid := range pids {
		sum += sumKilobytes(pid, "smaps_rollup", "\nPss_Anon:", "\nPss_Shmem:")
	}
	return sum > limit
}

// sumKilobytes adds up lines of a file of a process, and returns bytes.
func sumKilobytes(pid int, file string, names ...string) uint64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return 0 // it has ended meanwhile
	}
	var sum uint64
	for _, name := range names {
		words := splitFields(textAfter(string(raw), name))
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseUint(words[0], 10, 64); err == nil {
			sum += n << 10
		}
	}
	return sum
}
