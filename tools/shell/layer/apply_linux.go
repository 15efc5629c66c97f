package layer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the names of files that are being applied. A name is the same after an
// interruption, so that none is left behind.
const tempPrefix = ".zephbot-layer-"

// workMode is the mode of a new directory until everything in it is done.
const workMode = 0o700

// apply makes the directory below what the layer shows. Every step can be repeated, and so can all of them after an
// interruption at any place. tag is part of temporary names. step is called before each of them; nil = nobody is.
func apply(upper, below, tag string, changes []Change, step func()) error {
	from, err := openTree(upper)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := openTree(below)
	if err != nil {
		return err
	}
	defer to.close()
	if step == nil {
		step = func() {}
	}
	a := &applier{from: from, to: to, step: step, temp: tempPrefix + tag + "-"}
	each := func(do func(int, Change) error, c Change, i int) error {
		if err := do(i, c); err != nil {
			return fmt.Errorf("apply a layer: %q: %w", c.Path, err)
		}
		return nil
	}
	for i, c := range changes {
		if err := each(a.unlock, c, i); err != nil {
			return err
		}
	}
	for i, c := range slices.Backward(changes) { // contents before their directories
		if err := each(a.remove, c, i); err != nil {
			return err
		}
	}
	for i, c := range changes {
		if err := each(a.put, c, i); err != nil {
			return err
		}
	}
	for i, c := range slices.Backward(changes) { // last, because what happens in a directory changes its time
		if err := each(a.dress, c, i); err != nil {
			return err
		}
	}
	return to.sync()
}

// sync waits until everything on the file system of the tree is on the disk.
func (t *tree) sync() error {
	_, _, errno := unix.Syscall(unix.SYS_SYNCFS, t.root.Fd(), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("syncfs", errno)
	}
	return nil
}

type applier struct {
	from, to *tree
	step     func()
	temp     string // prefix of temporary names
}

// unlock makes a directory that is there already writable for us; dress gives it its mode.
func (a *applier) unlock(_ int, c Change) error {
	if c.Before.Kind != Directory && c.After.Kind != Directory {
		return nil
	}
	st, ok, err := a.to.stat(c.Path)
	if err != nil || !ok || kindOf(st.Mode) != Directory || st.Mode&workMode == workMode {
		return err
	}
	a.step()
	return a.to.in(c.Path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(chmodFD(fd, st.Mode&0o7777|workMode), unix.Close(fd))
	})
}

// remove removes what has to be gone, or is in the way of another kind.
func (a *applier) remove(_ int, c Change) error {
	isDir := c.Before.Kind == Directory
	if c.Before.Kind == Absent || c.After.Kind != Absent && isDir == (c.After.Kind == Directory) {
		return nil
	}
	st, ok, err := a.to.stat(c.Path)
	if err != nil || !ok || isDir != (st.Mode&unix.S_IFMT == unix.S_IFDIR) {
		return err // it is done
	}
	a.step()
	return a.to.in(c.Path, func(dir int, name string) error {
		flags := 0
		if isDir {
			flags = unix.AT_REMOVEDIR
			if err := sweep(dir, name); err != nil {
				return err
			}
		}
		return unix.Unlinkat(dir, name, flags)
	})
}

// sweep removes files from a directory that an interrupted attempt has left there.
func sweep(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), name)
	names, err := d.Readdirnames(-1)
	for _, n := range names {
		if len(n) > len(tempPrefix) && n[:len(tempPrefix)] == tempPrefix {
			err = errors.Join(err, unix.Unlinkat(fd, n, 0))
		}
	}
	return errors.Join(err, d.Close())
}

// chmodFD sets the mode of what is open, if only as a path.
func chmodFD(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// put makes what is new.
func (a *applier) put(i int, c Change) error {
	switch {
	case c.After.Kind == Directory && c.Before.Kind != Directory:
		a.step()
		return a.to.in(c.Path, func(dir int, name string) error {
			if err := unix.Mkdirat(dir, name, workMode); err != nil && !errors.Is(err, unix.EEXIST) {
				return err
			}
			return nil
		})
	case c.After.Kind == File && !c.Before.same(c.After):
		a.step()
		return a.replace(i, c, func(dir int, temp string) error { return a.copy(dir, temp, c) })
	case c.After.Kind == Link && c.Before != c.After:
		a.step()
		return a.replace(i, c, func(dir int, temp string) error {
			if err := unix.Symlinkat(c.After.Content, dir, temp); err != nil {
				return err
			}
			return dress(dir, temp, c.After)
		})
	}
	return nil
}

// replace makes something under a temporary name, and renames it.
func (a *applier) replace(i int, c Change, build func(dir int, temp string) error) error {
	return a.to.in(c.Path, func(dir int, name string) error {
		temp := a.temp + strconv.Itoa(i)
		if err := unix.Unlinkat(dir, temp, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		err := build(dir, temp)
		if err == nil {
			a.step()
			err = unix.Renameat(dir, temp, dir, name)
		}
		if err != nil {
			if gone := unix.Unlinkat(dir, temp, 0); !errors.Is(gone, unix.ENOENT) {
				err = errors.Join(err, gone)
			}
		}
		return err
	})
}

// copy copies a file of the layer, with its holes.
func (a *applier) copy(dir int, temp string, c Change) error {
	src, err := a.from.file(c.Path)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // opened for reading
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), temp)
	err = copySparse(dst, src, c.After.Size)
	if err = errors.Join(err, dst.Close()); err != nil {
		return err
	}
	return dress(dir, temp, c.After)
}

// copySparse copies size bytes; what is a hole stays one.
func copySparse(dst, src *os.File, size int64) error {
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(src.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // the rest is a hole
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(int(src.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		end := min(hole, size)
		if _, err := io.Copy(io.NewOffsetWriter(dst, data), io.NewSectionReader(src, data, end-data)); err != nil {
			return err
		}
		at = end
	}
	return dst.Truncate(size)
}

// dress gives files whose content is unchanged, and directories, their mode and time.
func (a *applier) dress(_ int, c Change) error {
	switch {
	case c.After.Kind == Directory, c.After.Kind == File && c.Before.same(c.After) && c.Before != c.After:
		a.step()
		return a.to.in(c.Path, func(dir int, name string) error { return dress(dir, name, c.After) })
	}
	return nil
}

// dress gives what is at a name its owner, mode and time. It follows no link.
func dress(dir int, name string, s State) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }() // opened as a path
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if kindOf(st.Mode) != s.Kind {
		return &fs.PathError{Op: "dress", Path: name, Err: ErrChanged}
	}
	if st.Uid != s.UID || st.Gid != s.GID {
		if err := unix.Fchownat(
			fd, "", int(s.UID), int(s.GID), unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW,
		); err != nil {
			return err
		}
	}
	if s.Kind != Link && st.Mode&0o7777 != s.Mode {
		if err := chmodFD(fd, s.Mode); err != nil {
			return err
		}
	}
	when := unix.NsecToTimespec(s.Time)
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, when}, unix.AT_SYMLINK_NOFOLLOW)
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Link
	default:
		return Absent
	}
}
