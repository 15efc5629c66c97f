package layer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Read lists what differs between the layer in upper and the directory below, in the order of paths. Every directory of
// the layer has a Change, so that its mode and time can be set. The command must have ended.
func Read(ctx context.Context, upper, below string, limits Limits) ([]Change, error) {
	above, err := openTree(upper)
	if err != nil {
		return nil, err
	}
	defer above.close()
	lower, err := openTree(below)
	if err != nil {
		return nil, err
	}
	defer lower.close()
	limits = limits.withDefaults()
	r := &reader{ctx: ctx, above: above, below: lower, left: limits.Entries, budget: limits.Bytes}
	st, _, err := above.stat(".")
	if err != nil {
		return nil, err
	}
	base, _, err := lower.stat(".")
	if err != nil {
		return nil, err
	}
	err = r.directory(".", &st, &base, false)
	if failed := new(fs.PathError); errors.Is(err, unix.EACCES) && errors.As(err, &failed) {
		return nil, &Refused{failed.Path, "closed to us"}
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.changes, byPath)
	return r.changes, nil
}

// byPath orders changes so that a directory comes before what is in it.
func byPath(a, b Change) int {
	x, y := a.Path, b.Path
	for i := 0; i < len(x) && i < len(y); i++ {
		if x[i] != y[i] {
			return weight(x[i]) - weight(y[i])
		}
	}
	switch {
	case x == ".":
		return -1
	case y == ".":
		return 1
	}
	return len(x) - len(y)
}

// weight puts a slash before all other bytes.
func weight(b byte) int {
	if b == '/' {
		return -1
	}
	return int(b)
}

// reader compares a layer with what is below.
type reader struct {
	ctx          context.Context //nolint:containedctx // one call of Read
	above, below *tree
	left         int   // changes that are still allowed
	budget       int64 // bytes that are still allowed
	changes      []Change
}

func (r *reader) add(c Change) error {
	if r.left--; r.left < 0 {
		return ErrLarge
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := legible(c); err != nil {
		return err
	}
	r.changes = append(r.changes, c)
	return nil
}

// legible refuses a change with a name, or a target of a link, that the record of a layer could not hold: JSON would
// turn it into another one.
func legible(c Change) error {
	for _, text := range []string{c.Path, c.Before.Content, c.After.Content} {
		if !utf8.ValidString(text) {
			return &Refused{c.Path, "a name that is no text"}
		}
	}
	return nil
}

// directory compares a directory of the layer, whose state is up, with what is below, whose state is low; nil = nothing
// is. whole says that what is below it is hidden.
func (r *reader) directory(p string, up, low *unix.Stat_t, whole bool) error {
	own, err := r.check(p, up, low)
	if err != nil {
		return err
	}
	if own["redirect"] != "" {
		return &Refused{p, "a directory that was moved"}
	}
	isDir := low != nil && low.Mode&unix.S_IFMT == unix.S_IFDIR
	whole = isDir && (whole || own["opaque"] == "y")
	c := Change{Path: p, Whole: whole}
	if c.After, err = r.above.read(r.ctx, p, up, &r.budget); err != nil {
		return err
	}
	if low != nil {
		if c.Before, err = r.lower(p, low); err != nil {
			return err
		}
	}
	if err := r.add(c); err != nil {
		return err
	}
	names, err := r.above.names(p)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.entry(path.Join(p, name), isDir, whole); err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	hidden, err := r.below.names(p)
	if err != nil {
		return err
	}
	for _, name := range hidden {
		if _, there := slices.BinarySearch(names, name); there {
			continue
		}
		if err := r.gone(path.Join(p, name)); err != nil {
			return err
		}
	}
	return nil
}

// entry compares an entry of a directory in the layer.
func (r *reader) entry(p string, below, whole bool) error {
	up, ok, err := r.above.stat(p)
	if err != nil || !ok {
		return errors.Join(err, r.lost(ok))
	}
	var low *unix.Stat_t
	if below {
		st, ok, err := r.below.stat(p)
		if err != nil {
			return err
		}
		if ok {
			low = &st
		}
	}
	out, err := r.whiteout(p, &up)
	switch {
	case err != nil:
		return err
	case out && low == nil:
		return nil
	case out:
		return r.gone(p)
	case up.Mode&unix.S_IFMT == unix.S_IFDIR:
		return r.directory(p, &up, low, whole)
	}
	if _, err := r.check(p, &up, low); err != nil {
		return err
	}
	c := Change{Path: p}
	if c.After, err = r.above.read(r.ctx, p, &up, &r.budget); err != nil {
		return err
	}
	if low != nil {
		if low.Mode&unix.S_IFMT == unix.S_IFDIR {
			if err := r.gone(p); err != nil {
				return err
			}
			last := &r.changes[slices.IndexFunc(r.changes, func(c Change) bool { return c.Path == p })]
			last.After = c.After
			return legible(*last)
		}
		if c.Before, err = r.lower(p, low); err != nil {
			return err
		}
		if c.Before == c.After && !whole { // it was only copied
			return nil
		}
	}
	return r.add(c)
}

func (r *reader) lost(ok bool) error {
	if ok {
		return nil
	}
	return ErrDamaged
}

// whiteout reports whether an entry says that what is below is deleted.
func (r *reader) whiteout(p string, st *unix.Stat_t) (bool, error) {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		if st.Rdev != 0 {
			return false, &Refused{p, "a device"}
		}
		return true, nil
	case unix.S_IFREG:
		if st.Size > 0 {
			return false, nil
		}
		own, _, err := r.above.attributes(p)
		_, out := own["whiteout"]
		return out, err
	}
	return false, nil
}

// gone adds the deletion of what is at p below, with everything in it.
func (r *reader) gone(p string) error {
	st, ok, err := r.below.stat(p)
	if err != nil || !ok {
		return err
	}
	c := Change{Path: p}
	if c.Before, err = r.lower(p, &st); err != nil {
		return err
	}
	c.Whole = c.Before.Kind == Directory
	if err := r.add(c); err != nil || !c.Whole {
		return err
	}
	names, err := r.below.names(p)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.gone(path.Join(p, name)); err != nil {
			return err
		}
	}
	return nil
}

// lower returns the state below at p, which the layer touches.
func (r *reader) lower(p string, st *unix.Stat_t) (State, error) {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1 {
		return State{}, &Refused{p, "a file with several names"}
	}
	s, err := r.below.read(r.ctx, p, st, &r.budget)
	if errors.Is(err, unix.EXDEV) {
		return s, &Refused{p, "another file system"}
	}
	return s, err
}

// check refuses what cannot be applied exactly, and returns the attributes of the form.
func (r *reader) check(p string, up, low *unix.Stat_t) (map[string]string, error) {
	kind := up.Mode & unix.S_IFMT
	switch {
	case kind != unix.S_IFDIR && kind != unix.S_IFREG && kind != unix.S_IFLNK:
		return nil, &Refused{p, "a pipe, a socket or a device"}
	case up.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return nil, &Refused{p, "a bit that lends the rights of an owner"}
	case kind == unix.S_IFREG && up.Nlink > 1:
		return nil, &Refused{p, "a file with several names"}
	}
	ours := up.Uid == uint32(os.Geteuid()) && up.Gid == uint32(os.Getegid()) //nolint:gosec // not negative
	if !ours && (low == nil || up.Uid != low.Uid || up.Gid != low.Gid) {
		return nil, &Refused{p, "another owner"}
	}
	own, others, err := r.above.attributes(p)
	if err == nil && len(others) > 0 {
		err = &Refused{p, "the attribute " + others[0]}
	}
	return own, err
}
