package warden

import (
	"os"
	"strconv"
	"syscall"
)

// members lists every process of the run but the helper: all of its PID namespace, or what is below it.
func (s *supervisor) members() []int {
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

// Descendants lists every process below pid, nearest first.
func Descendants(pid int) []int {
	var all []int
	seen := map[int]bool{pid: true}
	children := family()
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

// Children lists the children of pid.
func Children(pid int) []int { return family()(pid) }

// family is how the children of a process are found.
func family() func(int) []int {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil { // a kernel without CONFIG_PROC_CHILDREN
		table := parents()
		return func(pid int) []int { return table[pid] }
	}
	return childrenOf
}

// childrenOf asks the kernel for the children of all threads of pid.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := readNames(dir)
	if err != nil {
		return nil // it ended meanwhile
	}
	var pids []int
	for _, t := range threads {
		raw, err := os.ReadFile(dir + "/" + t + "/children")
		if err != nil {
			continue
		}
		for _, f := range fields(string(raw)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// parents reads the whole process table: children by parent.
func parents() map[int][]int {
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
		words := fields(afterLast(string(raw), ')')) // the name may hold blanks and parentheses
		if len(words) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(words[1]); err == nil {
			table[parent] = append(table[parent], pid)
		}
	}
	return table
}

// over says whether the processes have more than limit bytes for themselves, with what is in the shared memory of the
// run. Pages of files do not count: the kernel takes them back when it needs them. What several processes share counts
// once; as that is costly to find out, it is looked at only when it matters.
func over(limit uint64, pids []int, shared bool) bool {
	var files uint64
	if shared {
		var fs syscall.Statfs_t
		if syscall.Statfs("/dev/shm", &fs) == nil {
			files = (fs.Blocks - fs.Bfree) * uint64(fs.Bsize) //nolint:gosec,unconvert // positive; another type elsewhere
		}
	}
	most := files
	for _, pid := range pids {
		most += kilobytes(pid, "status", "\nRssAnon:", "\nRssShmem:")
	}
	if most <= limit {
		return false
	}
	sum := files
	for _, pid := range pids {
		sum += kilobytes(pid, "smaps_rollup", "\nPss_Anon:", "\nPss_Shmem:")
	}
	return sum > limit
}

// kilobytes sums lines of a file of a process, in bytes.
func kilobytes(pid int, file string, names ...string) uint64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return 0 // it ended meanwhile
	}
	var sum uint64
	for _, name := range names {
		words := fields(after(string(raw), name))
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseUint(words[0], 10, 64); err == nil {
			sum += n << 10
		}
	}
	return sum
}
