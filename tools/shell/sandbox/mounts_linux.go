package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// If possible, a command gets its own root, which contains only what is granted, and in which everything that must not
// be changed is read-only. A denied path inside a granted directory is covered there by an empty directory, or by a
// device that cannot be opened. The whole directory can then be granted. Otherwise Landlock grants the directory in
// pieces (see carve).
//
// A cover hides a name. When somebody outside the sandbox replaces a covered file by renaming another over it, or
// removes it, the kernel removes the cover, and a running command sees the new file. A directory is safe as long as it
// is not itself removed.

// maxLinks limits the links on the way to a path, like the kernel does.
const maxLinks = 40

// layout is the plan of a command's root.
type layout struct {
	links map[string]string // targets of the links on the way to what is granted, by path
	binds map[string]bool   // what is granted; true = it may be changed
}

// addPath grants p: its real path, and every link on the way.
func (l *layout) addPath(p string, write bool) {
	if real := l.resolvePath(p); real != "" && real != "/" {
		l.binds[real] = l.binds[real] || write
	}
}

// resolvePath returns the real path of p and records its links; "" when it leads nowhere.
func (l *layout) resolvePath(p string) string {
	at, rest := "/", strings.Split(strings.Trim(filepath.Clean(p), "/"), "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(at, name) // ".." is correct because at contains no links
		info, err := os.Lstat(next)
		if err != nil {
			return ""
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		text, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return ""
		}
		l.links[next] = text
		if filepath.IsAbs(text) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(text, "/"), "/"), rest...)
	}
	return at
}

// rootMounts returns the mounts of the root, and which denied paths they cover.
func rootMounts(spec Spec, can abilities, deny []string) ([]supervisor.Mount, map[string]bool) {
	l := &layout{links: map[string]string{}, binds: map[string]bool{}}
	for _, p := range systemRead() {
		if !can.pid || !isBelow(p, "/proc") {
			l.addPath(p, false)
		}
	}
	if can.abi > 0 { // Landlock restricts it further
		l.addPath("/etc", false)
	}
	for _, p := range systemConfig() {
		l.addPath(p, false)
	}
	if !can.pid {
		l.addPath("/proc", false)
	}
	for _, p := range systemDevices() { // devices can be written in spite of it, but their modes cannot be changed
		l.addPath(p, false)
	}
	for _, p := range spec.Read {
		l.addPath(p, false)
	}
	for _, p := range spec.Write {
		l.addPath(p, true)
	}
	mounts := l.orderedMounts()
	if spec.Overlay != nil {
		mounts = overlayMounts(mounts, spec)
	}
	if dir := l.resolvePath(spec.Dir); dir != "" {
		mounts = append(mounts, supervisor.Mount{Kind: supervisor.MountDir, Path: dir})
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		mounts = append(mounts, supervisor.Mount{Kind: supervisor.MountLink, Path: "/dev/" + name, Source: target})
	}
	if !spec.Reading {
		mounts = append(mounts, supervisor.Mount{Kind: supervisor.MountTmpfs, Path: "/dev/shm", Size: sharedMemory})
	}
	if can.pid {
		mounts = append(mounts, supervisor.Mount{Kind: supervisor.MountProc, Path: "/proc", Write: !spec.Reading})
	}
	if spec.Reading {
		place := privatePlace(spec)
		mounts = append(mounts, supervisor.Mount{Kind: supervisor.MountTmpfs, Path: place, Size: privateSize},
			supervisor.Mount{Kind: supervisor.MountDir, Path: homeIn(place)})
	}
	covers, covered := coverMounts(spec, deny)
	return append(mounts, covers...), covered
}

// orderedMounts returns the steps in an order in which parents come first. Something inside a directory
// with the same grant needs no step.
func (l *layout) orderedMounts() []supervisor.Mount {
	var list []supervisor.Mount
	within := func(p string) (inside, write bool) {
		for dir := filepath.Dir(p); dir != "/"; dir = filepath.Dir(dir) {
			if w, ok := l.binds[dir]; ok {
				inside, write = true, write || w
			}
		}
		return inside, write
	}
	for p, text := range l.links {
		if inside, _ := within(p); !inside {
			list = append(list, supervisor.Mount{Kind: supervisor.MountLink, Path: p, Source: text})
		}
	}
	for p, write := range l.binds {
		inside, writable := within(p)
		if inside && (writable || !write) {
			continue
		}
		info, err := os.Lstat(p)
		if err != nil {
			continue
		}
		list = append(list, supervisor.Mount{
			Kind:   supervisor.MountBind,
			Path:   p,
			Source: p,
			Write:  write,
			Dir:    info.IsDir(),
		})
	}
	slices.SortFunc(list, func(a, b supervisor.Mount) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// grantedPaths returns the canonical paths that spec grants: those for reading, and those that may be changed.
func grantedPaths(spec Spec) (read, write []string) {
	resolve := func(lists ...[]string) []string {
		var out []string
		for _, p := range slices.Concat(lists...) {
			if real, err := filepath.EvalSymlinks(p); err == nil {
				out = append(out, real)
			}
		}
		return out
	}
	return resolve(systemRead(), systemConfig(), spec.Read), resolve(spec.Write)
}

// coverablePaths returns the denied paths that can be covered, parents first. They exist, are inside something granted,
// and contain nothing granted, which would be hidden too.
func coverablePaths(spec Spec, deny, read, write []string) []string {
	all := slices.Concat(read, write)
	dir := Canonical(spec.Dir)
	var places []string
	for _, d := range deny {
		inside := slices.ContainsFunc(all, func(p string) bool { return isBelow(d, p) })
		needed := d == dir || isBelow(dir, d) || slices.ContainsFunc(all, func(p string) bool { return isBelow(p, d) })
		if !inside || needed {
			continue
		}
		if info, err := os.Lstat(d); err == nil && info.Mode()&os.ModeSymlink == 0 { // a link cannot be a mount point
			places = append(places, d)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// coverMounts returns the mounts that cover denied paths, and which paths those are.
func coverMounts(spec Spec, deny []string) ([]supervisor.Mount, map[string]bool) {
	if len(deny) == 0 {
		return nil, nil
	}
	read, write := grantedPaths(spec)
	var list []supervisor.Mount
	covered, pinned := map[string]bool{}, map[string]bool{}
	for _, d := range coverablePaths(spec, deny, read, write) {
		if belowAny(d, covered) {
			continue
		}
		info, err := os.Lstat(d)
		if err != nil {
			continue
		}
		for _, dir := range pinnedDirs(d, write, pinned) {
			list = append(list, supervisor.Mount{Kind: supervisor.MountPin, Path: dir})
		}
		list = append(list, supervisor.Mount{Kind: supervisor.MountHide, Path: d, Dir: info.IsDir()})
		covered[d] = true
	}
	top := maps.Clone(covered)
	for _, d := range deny {
		if belowAny(d, top) {
			covered[d] = true
		}
	}
	return list, covered
}

func belowAny(d string, dirs map[string]bool) bool {
	for p := range dirs {
		if isBelow(d, p) {
			return true
		}
	}
	return false
}

// pinnedDirs returns the directories above d that a command could otherwise rename, topmost first. A mount
// point cannot be renamed. If a command moved the directory together with the cover, the next command would
// find d uncovered under another name.
func pinnedDirs(d string, write []string, pinned map[string]bool) []string {
	var dirs []string
	for dir := filepath.Dir(d); dir != "/"; dir = filepath.Dir(dir) {
		if slices.ContainsFunc(write, func(p string) bool { return isBelow(dir, p) }) && !pinned[dir] {
			dirs = append(dirs, dir)
			pinned[dir] = true
		}
	}
	slices.Reverse(dirs)
	return dirs
}

// keptCapabilities is what root keeps inside the sandbox: it may read and change files of other owners in the granted
// directories. It cannot change owners, and changes modes and times only of root's own files.
const keptCapabilities = 1 << unix.CAP_DAC_OVERRIDE

// keptReading is what root keeps in a command that only reads: it may read files of other owners.
const keptReading = 1 << unix.CAP_DAC_READ_SEARCH
