package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// descendants lists every process below pid, nearest first.
func descendants(pid int) []int {
	var all []int
	seen := map[int]bool{pid: true}
	children := childrenOf
	if _, err := os.Stat("/proc/thread-self/children"); err != nil { // a kernel without CONFIG_PROC_CHILDREN
		table := parents()
		children = func(pid int) []int { return table[pid] }
	}
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

// childrenOf asks the kernel for the children of all threads of pid.
func childrenOf(pid int) []int {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil // it ended meanwhile
	}
	var pids []int
	for _, t := range threads {
		raw, err := os.ReadFile(filepath.Join(dir, t.Name(), "children"))
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(raw)) {
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
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return table
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		end := bytes.LastIndexByte(raw, ')') // the name may hold blanks and parentheses
		if end < 0 {
			continue
		}
		fields := strings.Fields(string(raw[end+1:]))
		if len(fields) < 2 {
			continue
		}
		pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil {
			table[parent] = append(table[parent], pid)
		}
	}
	return table
}

// tasksOf counts the threads of a user.
func tasksOf(uid int) int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	n := 0
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != uid {
			continue
		}
		threads, err := os.ReadDir(filepath.Join(dir, "task"))
		if err == nil {
			n += len(threads)
		}
	}
	return n
}
