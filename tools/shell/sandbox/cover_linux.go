package sandbox

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A denied path inside a granted directory is covered: in a mount namespace of the command's own an empty, read-only directory lies over it,
// or a device that nobody can open. Then the whole directory can be granted. Where the kernel does not let us, Landlock grants the directory
// in pieces (see carve).
//
// A cover hides a name. When somebody outside the sandbox replaces a covered file by renaming another over it, or removes it, the kernel takes
// the cover away, and a command that still runs sees the new file. A directory is safe as long as it is not itself removed.

// grantedPaths are the canonical paths that spec grants, those that may be changed apart from the rest.
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

// coverable are the denied paths that can be covered, a directory before what is in it: those that are there, inside something granted, and
// not above something granted, which would be hidden too.
func coverable(spec Spec, deny []string) []string {
	if len(deny) == 0 {
		return nil
	}
	read, write := grantedPaths(spec)
	all := slices.Concat(read, write)
	dir := Canonical(spec.Dir)
	var places []string
	for _, d := range deny {
		inside := slices.ContainsFunc(all, func(p string) bool { return below(d, p) })
		needed := d == dir || below(dir, d) || slices.ContainsFunc(all, func(p string) bool { return below(p, d) })
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

// cover covers what can be covered of the denied paths and says which those are. The calling thread, which must not change, gets a mount
// namespace of its own, so nothing is covered for anybody else.
func cover(spec Spec, deny []string) map[string]bool {
	places := coverable(spec, deny)
	if len(places) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil
	}
	_, write := grantedPaths(spec)
	covered, pinned := map[string]bool{}, map[string]bool{}
	for _, d := range places {
		if belowAny(d, covered) {
			continue
		}
		if pin(d, write, pinned) == nil && hide(d) == nil {
			covered[d] = true
		}
	}
	top := maps.Clone(covered)
	for _, d := range deny {
		if belowAny(d, top) {
			covered[d] = true
		}
	}
	return covered
}

func belowAny(d string, dirs map[string]bool) bool {
	for p := range dirs {
		if below(d, p) {
			return true
		}
	}
	return false
}

// pin mounts the directories above d that a command could otherwise rename, over themselves: a mount point keeps its name. Moved away with its
// cover, d would lie bare under another name for the next command.
func pin(d string, write []string, pinned map[string]bool) error {
	var dirs []string
	for dir := filepath.Dir(d); dir != "/"; dir = filepath.Dir(dir) {
		if slices.ContainsFunc(write, func(p string) bool { return below(dir, p) }) && !pinned[dir] {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range slices.Backward(dirs) { // from above: what is mounted later lies inside
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("pin %s: %w", dir, err)
		}
		pinned[dir] = true
	}
	return nil
}

// hide mounts a cover over d and looks whether it lies there.
func hide(d string) error {
	const sealed = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	before, err := os.Lstat(d)
	if err != nil {
		return err
	}
	switch {
	case before.IsDir():
		err = unix.Mount("none", d, "tmpfs", sealed, "size=4k,nr_inodes=2,mode=0000")
	default:
		err = unix.Mount("/dev/null", d, "", unix.MS_BIND, "")
		if err == nil { // devices do not open under nodev, not even for root
			err = unix.Mount("", d, "", unix.MS_REMOUNT|unix.MS_BIND|sealed, "")
		}
	}
	if err != nil {
		return fmt.Errorf("cover %s: %w", d, err)
	}
	after, err := os.Lstat(d)
	if err != nil {
		return err
	}
	if os.SameFile(before, after) {
		return fmt.Errorf("cover %s: it does not hold", d)
	}
	return nil
}

// mayMount says whether this process may make a mount namespace as it is.
func mayMount() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// startCommand starts what make gives. A helper that has paths to cover and may not mount gets a user namespace in which it may, with the same
// user and group; where the kernel refuses that, it starts without.
func startCommand(spec Spec, command func() *exec.Cmd) (*exec.Cmd, error) {
	if !spec.Off && landlockABI() > 0 && !mayMount() && len(coverable(spec, denied(spec))) > 0 {
		cmd := command()
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // kept when the helper starts; the command does not get it
		if cmd.Start() == nil {
			return cmd, nil
		}
	}
	cmd := command()
	return cmd, cmd.Start()
}
