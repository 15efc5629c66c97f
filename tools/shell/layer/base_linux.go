package layer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Base identifies a directory with everything in it, as far as it was looked at: inode, size, mode and the time of the
// last change of each entry. The time changes with every change of content, mode or owner, and nobody can set it.
type Base struct {
	Sum     string `json:"sum"`               // SHA-256 in lower-case hex
	Entries int    `json:"entries"`           // how many were looked at
	Partial bool   `json:"partial,omitempty"` // there are more
	// Foreign: something belongs to another account than ours.
	Foreign bool `json:"foreign,omitempty"`
}

// Look returns the Base of a directory. spare are relative paths that are left out with everything in them.
func Look(ctx context.Context, dir string, spare map[string]bool, limits Limits) (Base, error) {
	t, err := openTree(dir)
	if err != nil {
		return Base{}, err
	}
	defer t.close()
	l := looker{ctx: ctx, spare: spare, left: limits.withDefaults().Tree, sum: sha256.New()}
	l.uid, l.gid = uint32(os.Geteuid()), uint32(os.Getegid()) //nolint:gosec // not negative
	var st unix.Stat_t
	if err := unix.Fstat(int(t.root.Fd()), &st); err != nil {
		return Base{}, err
	}
	l.dev = st.Dev
	l.note(".", &st)
	if err := l.directory(int(t.root.Fd()), "."); err != nil {
		return Base{}, err
	}
	l.Sum = hex.EncodeToString(l.sum.Sum(nil))
	return l.Base, nil
}

type looker struct {
	Base

	ctx      context.Context //nolint:containedctx // one call of Look
	spare    map[string]bool
	left     int
	sum      hash.Hash
	dev      uint64
	uid, gid uint32
}

// note adds an entry to the sum.
func (l *looker) note(p string, st *unix.Stat_t) {
	l.Entries++
	l.left--
	l.Foreign = l.Foreign || st.Uid != l.uid || st.Gid != l.gid
	buf := make([]byte, 0, 64+len(p))
	for _, v := range []uint64{
		uint64(len(p)), st.Ino, // not the number of the device, which differs between machines that share a volume
		uint64(st.Mode), uint64(st.Size), uint64(st.Ctim.Nano()), //nolint:gosec // only compared
		uint64(st.Uid), uint64(st.Gid), st.Rdev,
	} {
		buf = binary.LittleEndian.AppendUint64(buf, v)
	}
	l.sum.Write(append(buf, p...)) // never fails
}

// directory looks at the entries of the directory at p, which is open as fd.
func (l *looker) directory(fd int, p string) error {
	self, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(self), p)
	names, err := d.Readdirnames(-1)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.entry(int(d.Fd()), name, path.Join(p, name)); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	return d.Close()
}

func (l *looker) entry(dir int, name, p string) error {
	switch {
	case l.spare[p]:
		return nil
	case l.left <= 0:
		l.Partial = true
		return nil
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if missing(err) {
			return ErrChanged // it was there a moment ago
		}
		return err
	}
	l.note(p, &st)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	if st.Dev != l.dev {
		return &Refused{p, "another file system"}
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil // the command cannot look into it either
	}
	if err != nil {
		return err
	}
	err = l.directory(fd, p)
	return errors.Join(err, unix.Close(fd))
}

// checkUnchanged returns ErrChanged unless everything that the changes touch is below as it was. Bytes are not
// bounded: it reads what Read has read.
func checkUnchanged(ctx context.Context, below string, changes []Change) error {
	t, err := openTree(below)
	if err != nil {
		return err
	}
	defer t.close()
	budget := int64(1) << 62
	known := map[string]bool{}
	for _, c := range changes {
		known[c.Path] = true
	}
	for _, c := range changes {
		st, ok, err := t.stat(c.Path)
		if err != nil {
			return err
		}
		now := State{}
		if ok {
			if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 {
				return ErrChanged
			}
			if now, err = t.read(ctx, c.Path, &st, &budget); err != nil {
				return err
			}
		}
		if now != c.Before {
			return ErrChanged
		}
		if !c.Whole {
			continue
		}
		names, err := t.names(c.Path)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !known[path.Join(c.Path, name)] {
				return ErrChanged
			}
		}
	}
	return nil
}

// halfDone returns ErrChanged unless everything that the changes touch is as it was, as it will be, or as applying the
// changes leaves it in between.
func halfDone(ctx context.Context, below string, changes []Change) error {
	t, err := openTree(below)
	if err != nil {
		return err
	}
	defer t.close()
	budget := int64(1) << 62
	for _, c := range changes {
		st, ok, err := t.stat(c.Path)
		if err != nil {
			return err
		}
		var now State
		if ok {
			if now, err = t.read(ctx, c.Path, &st, &budget); err != nil {
				return err
			}
		}
		removed := !ok && (c.Before.Kind == Directory) != (c.After.Kind == Directory)
		if !removed && !now.same(c.Before) && !now.same(c.After) {
			return ErrChanged
		}
	}
	return nil
}
