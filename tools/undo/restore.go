package undo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the names of files that are being put back. The name is the same after an interruption, so that
// none is left behind.
const tempPrefix = ".zephbot-undo-"

// workMode is the mode of a directory while what was in it is put back.
const workMode = 0o700

// restore puts back the paths that are ready, and sets their new states. It continues after a failure.
func restore(home *home, list []*net) {
	for _, n := range slices.Backward(list) { // contents before their directories
		if n.inTheWay() {
			n.attempt(func(d *os.File, name string) error { return remove(d, name, n.now.Kind == folder) })
		}
	}
	for _, n := range list {
		switch n.Before.Kind {
		case folder:
			n.attempt(makeFolder)
		case file:
			n.attempt(func(d *os.File, name string) error { return putFile(home, d, name, n) })
		case link:
			n.attempt(func(d *os.File, name string) error { return putLink(d, name, n.Before.Target) })
		}
	}
	for _, n := range slices.Backward(list) { // last, because a directory may forbid changes in it
		if n.Before.Kind == folder {
			n.attempt(func(d *os.File, name string) error { return chmod(d, name, n.Before.Mode, unix.O_DIRECTORY) })
		}
	}
	for _, n := range list {
		if n.state == Ready {
			n.state = Done
		}
	}
}

// inTheWay reports whether what is at a path has to be removed before it is put back.
func (n *net) inTheWay() bool {
	folders := n.now.Kind == folder || n.Before.Kind == folder
	return n.now.Kind != absent && (n.Before.Kind == absent || n.now.Kind != n.Before.Kind && folders)
}

// attempt does something at a path, if it is ready.
func (n *net) attempt(do func(d *os.File, name string) error) {
	if n.state == Ready && at(n, do) != nil {
		n.state = Failed
	}
}

// at calls do with the directory of a path, and makes it writable meanwhile.
func at(n *net, do func(d *os.File, name string) error) (err error) {
	d, err := dirAt(n.Root, filepath.Dir(n.Path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	info, err := d.Stat()
	if err != nil {
		return err
	}
	const writes = 0o300
	if info.Mode().Perm()&writes != writes {
		if err := d.Chmod(info.Mode() | writes); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Chmod(info.Mode())) }()
	}
	return do(d, filepath.Base(n.Path))
}

func remove(d *os.File, name string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
		if err := sweepTemps(d, name); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(int(d.Fd()), name, flags); err != nil {
		return &fs.PathError{Op: "unlinkat", Path: d.Name() + "/" + name, Err: err}
	}
	return nil
}

// sweepTemps removes what an interrupted attempt has left in a directory.
func sweepTemps(d *os.File, name string) error {
	sub, err := openat(d, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }() // opened for reading
	names, err := sub.Readdirnames(-1)
	for _, n := range names {
		if len(n) > len(tempPrefix) && n[:len(tempPrefix)] == tempPrefix {
			err = errors.Join(err, unix.Unlinkat(int(sub.Fd()), n, 0))
		}
	}
	return err
}

func makeFolder(d *os.File, name string) error {
	err := unix.Mkdirat(int(d.Fd()), name, workMode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return &fs.PathError{Op: "mkdirat", Path: d.Name() + "/" + name, Err: err}
	}
	return nil
}

// chmod sets the mode of a name that is no link.
func chmod(d *os.File, name string, mode uint32, flags int) error {
	f, err := openat(d, name, unix.O_RDONLY|flags, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(int(f.Fd()), mode), f.Close())
}

// putFile puts a file back in one step: it is as it was, or as the turn left it.
func putFile(home *home, d *os.File, name string, n *net) error {
	if n.now.Kind == file && n.now.Hash != "" && n.now.Hash == n.Before.Hash {
		return chmod(d, name, n.Before.Mode, 0)
	}
	return replace(d, name, func(temp string) error {
		f, err := openat(d, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = home.get(n.Before.Hash, f)
		if err == nil {
			err = unix.Fchmod(int(f.Fd()), n.Before.Mode)
		}
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		when := unix.NsecToTimespec(n.Before.Time)
		return unix.UtimesNanoAt(int(d.Fd()), temp, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func putLink(d *os.File, name, target string) error {
	return replace(d, name, func(temp string) error { return unix.Symlinkat(target, int(d.Fd()), temp) })
}

// replace makes something under a temporary name, and renames it.
func replace(d *os.File, name string, build func(temp string) error) error {
	temp := tempPrefix + Key(name)
	fd := int(d.Fd())
	if err := unix.Unlinkat(fd, temp, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	err := build(temp)
	if err == nil {
		err = unix.Renameat(fd, temp, fd, name)
	}
	if err != nil {
		if gone := unix.Unlinkat(fd, temp, 0); !errors.Is(gone, unix.ENOENT) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// old reports whether a turn is older than is kept.
func (f *turnFile) old(now time.Time, age time.Duration) bool { return now.Sub(f.At) > age }
