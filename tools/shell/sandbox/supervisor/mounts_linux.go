package supervisor

import (
	"errors"
	"os"
	"path"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// A command has its own root: an empty, read-only file system that contains only the granted paths. They are read-only
// too, except those that may be changed. A command cannot look at what is not there, change its mode, owner, times or
// attributes, or connect to it, for example to the socket of a database, a container engine or the service manager.

// mountAttr is struct mount_attr.
type mountAttr struct{ set, clear, propagation, userns uint64 }

// openTree copies the mounts at p, so that they can be mounted elsewhere.
func openTree(p string) (int, error) {
	b, err := syscall.BytePtrFromString(p)
	if err != nil {
		return -1, err
	}
	dir := atFdcwd
	fd, _, errno := syscall.Syscall(sysOpenTree, uintptr(dir), uintptr(unsafe.Pointer(b)),
		openTreeClone|syscall.O_CLOEXEC|atRecursive)
	runtime.KeepAlive(b)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// setAttr sets attributes of the mount at fd and of all mounts below it.
func setAttr(fd int, attr mountAttr, flags uintptr) error {
	empty, err := syscall.BytePtrFromString("")
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(fd), uintptr(unsafe.Pointer(empty)), atEmptyPath|flags,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// moveMount mounts what openTree copied at p.
func moveMount(fd int, p string) error {
	empty, err1 := syscall.BytePtrFromString("")
	b, err2 := syscall.BytePtrFromString(p)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	dir := atFdcwd
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(fd), uintptr(unsafe.Pointer(empty)), uintptr(dir),
		uintptr(unsafe.Pointer(b)), moveMountFEmpty, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// newRoot creates the root of the plan and enters it. The process must have its own mount namespace.
func newRoot(mounts []Mount) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return wrapError("keep mounts to ourselves", err)
	}
	trees := make([]int, len(mounts))
	for i, m := range mounts {
		trees[i] = -1
		if m.Kind != MountBind {
			continue
		}
		var err error
		if trees[i], err = copyTree(m); err != nil {
			return wrapError("prepare "+m.Source, err)
		}
	}
	if err := enterEmpty(); err != nil {
		return err
	}
	for i, m := range mounts {
		if err := placeMount(m, trees[i]); err != nil {
			return wrapError("place "+m.Path, err)
		}
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return wrapError("change the root", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return wrapError("leave the old root", err)
	}
	if err := os.Chdir("/"); err != nil {
		return wrapError("enter the new root", err)
	}
	if err := coverMounts(mounts); err != nil {
		return err
	}
	return wrapError("close the root", syscall.Mount("", "/", "",
		syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|syscall.MS_NOSUID, ""))
}

// copyTree copies the mounts of a bind. The result is -1 when the path no longer exists.
func copyTree(m Mount) (int, error) {
	fd, err := openTree(m.Source)
	if errors.Is(err, syscall.ENOENT) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	attr := mountAttr{set: mountAttrNosuid | mountAttrRdonly}
	if m.Write {
		attr.set = mountAttrNosuid
	}
	return fd, setAttr(fd, attr, atRecursive)
}

// enterEmpty mounts an empty file system, which becomes the root, over a directory that is not needed any more.
func enterEmpty() error {
	var err error
	for _, at := range []string{"/proc", "/sys", "/dev", "/tmp"} {
		if err = syscall.Mount("zephbot", at, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV,
			"mode=0755,size=4m"); err == nil {
			return wrapError("enter the new root", os.Chdir(at))
		}
	}
	return wrapError("make a new root", err)
}

// placeMount creates one entry of the root, which is the working directory.
func placeMount(m Mount, tree int) error {
	at := "." + m.Path
	switch m.Kind {
	case MountHide, MountPin:
		return nil // done later, when everything is in place
	case MountLink:
		if err := os.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(m.Source, at); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		return nil
	case MountBind:
		if tree < 0 {
			return nil
		}
		defer func() { _ = syscall.Close(tree) }() // it is mounted, or the mount failed
		if err := makeTarget(at, m.Dir); err != nil {
			return err
		}
		return moveMount(tree, at)
	case MountDir:
		return os.MkdirAll(at, 0o755)
	case MountTmpfs:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		return syscall.Mount("zephbot", at, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC,
			"mode=1777,nr_inodes=16k,size="+strconv.FormatInt(m.Size, 10))
	case MountLayer:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		return syscall.Mount("zephbot", at, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, m.Source)
	case MountProc:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		flags := uintptr(syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC)
		if !m.Write {
			flags |= syscall.MS_RDONLY
		}
		return syscall.Mount("proc", at, "proc", flags, "")
	default:
		return errors.New("unknown kind of mount")
	}
}

// makeTarget creates the file or directory on which a tree is mounted. Inside another mount it already exists.
func makeTarget(at string, dir bool) error {
	if dir {
		return os.MkdirAll(at, 0o755)
	}
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	if err := os.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	return f.Close()
}

// coverMounts executes the steps that change existing mounts.
func coverMounts(mounts []Mount) error {
	for _, m := range mounts {
		var err error
		switch m.Kind {
		case MountPin:
			err = syscall.Mount(m.Path, m.Path, "", syscall.MS_BIND|syscall.MS_REC, "")
		case MountHide:
			err = hidePath(m)
		default:
			continue
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return wrapError("cover "+m.Path, err)
		}
	}
	return nil
}

// hidePath mounts a cover over a path and checks that it is effective.
func hidePath(m Mount) error {
	const sealed = syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	before, err := os.Lstat(m.Path)
	if err != nil {
		return err
	}
	if m.Dir {
		err = syscall.Mount("none", m.Path, "tmpfs", sealed, "size=4k,nr_inodes=2,mode=0000")
	} else if err = syscall.Mount("/dev/null", m.Path, "", syscall.MS_BIND, ""); err == nil {
		// under nodev, devices cannot be opened, not even by root
		err = syscall.Mount("", m.Path, "", syscall.MS_REMOUNT|syscall.MS_BIND|sealed, "")
	}
	if err != nil {
		return err
	}
	after, err := os.Lstat(m.Path)
	if err != nil {
		return err
	}
	if os.SameFile(before, after) {
		return errors.New("the cover does not hold")
	}
	return nil
}
