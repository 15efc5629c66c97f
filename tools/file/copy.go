package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

func (t *toolset) copyPath() (tools.Tool, error) {
	return t.pairTool(tools.Definition{
		Name: "copy_path",
		Description: "Copies a file, or a directory with all that is in it. A file at the destination is replaced, a " +
			"directory is not.",
	}, "copy", mayCopy, func(_, to place) []place {
		return []place{to}
	}, func(s *scope, from, to place) (*tools.Result, error) {
		src, err := s.openParent(from)
		if err != nil {
			return nil, err
		}
		defer src.close()
		dst, _, err := s.makeDirs(to.root, to.parent())
		if err != nil {
			return nil, err
		}
		defer dst.close()
		if err := checkSole(dst, to.base(), to.given); err != nil {
			return nil, err
		}
		c, err := s.newCopier(to)
		if err != nil {
			return nil, err
		}
		if err := c.runCopy(src, from, dst, to, false); err != nil {
			return nil, err
		}
		text := fmt.Sprintf(
			"Copied %s to %s (%s, %s)",
			showName(s.displayPath(from.abs)),
			showName(s.displayPath(to.abs)),
			countNoun(c.files, "file", "files"),
			countNoun(c.budget-c.left, "byte", "bytes"),
		)
		return &tools.Result{Text: text + c.skippedNote()}, nil
	})
}

// mayCopy refuses what cannot be copied completely.
func mayCopy(s *scope, from, _ place) error {
	if from.isRoot() {
		return failedError("Copy what is in it.", "%s is a working directory and is not copied as a whole",
			quoteName(from.given))
	}
	if from.isRegular() {
		return s.checkReadable(from) // another name of the same file is covered too
	}
	return nil
}

// copier is one copy operation.
type copier struct {
	*scope
	budget  int64 // bytes that may be copied
	left    int64 // bytes that may still be copied
	full    error // why the limit is lower than MaxCopy; nil = it is not
	files   int
	entries int
	skipped []string
	more    int // skipped without being named
}

// newCopier returns a copy operation to a place, within the limits of one call and of the disk.
func (s *scope) newCopier(to place) (copier, error) {
	c := copier{scope: s, budget: s.MaxCopy}
	room, full := s.Disk.Room(s.ctx, to.abs, s.MaxCopy)
	if room < c.budget {
		c.budget, c.full = room, full
	}
	if c.left = c.budget; c.left == 0 {
		return c, c.full
	}
	return c, nil
}

// maxTold limits how many skipped files are named.
const maxTold = 20

// skipFile records a file that is not copied, and the reason.
func (c *copier) skipFile(abs, why string) {
	if len(c.skipped) == maxTold {
		c.more++
		return
	}
	c.skipped = append(c.skipped, showName(c.displayPath(abs))+": "+why)
}

func (c *copier) skippedNote() string {
	if len(c.skipped) == 0 {
		return ""
	}
	text := "\nNot copied:\n" + strings.Join(c.skipped, "\n")
	if c.more > 0 {
		text += fmt.Sprintf("\n… and %d more", c.more)
	}
	return text
}

// runCopy copies next to the destination and renames at the end, so that an incomplete copy is never visible. With
// whole, skipping a file is an error.
func (c *copier) runCopy(src dir, from place, dst dir, to place, whole bool) error {
	temp := tempName()
	err := c.copyOne(step{src: src, name: from.base(), dst: dst, as: temp, final: to.abs, top: true})
	if err == nil && whole && len(c.skipped) > 0 {
		err = failedError(
			"Copy what can be copied, then delete the rest.", "not everything can be moved: %s", c.skipped[0],
		)
	}
	if err == nil {
		err = dst.renameTo(temp, dst, to.base())
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, ignoreMissing(c.discardPartial(dst, temp)))
}

// discardPartial removes an incomplete copy, even if the call was cancelled.
func (c *copier) discardPartial(d dir, name string) error {
	st, ok, err := d.statName(name)
	if err != nil || !ok {
		return err
	}
	if fileKind(st) != unix.S_IFDIR {
		return d.removeName(name, false)
	}
	sub, err := d.openSub(name)
	if err != nil {
		return err
	}
	defer sub.close()
	names, err := sub.f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.discardPartial(sub, n); err != nil {
			return err
		}
	}
	return d.removeName(name, true)
}

// step is one entry to copy.
type step struct {
	src   dir
	name  string
	dst   dir
	as    string
	final string // canonical path of the finished copy
	depth int
	top   bool // named by the call itself: an error where others are skipped
}

func (c *copier) copyOne(e step) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.entries++; c.entries > c.MaxEntries {
		return failedError("Copy a directory further down.", "more than %d files and directories", c.MaxEntries)
	}
	from := e.src.joinName(e.name)
	st, ok, err := e.src.statName(e.name)
	if err != nil || !ok {
		return err // it disappeared meanwhile
	}
	if _, denied := c.Rules.Denied(from); denied {
		return c.refuseStep(e, reason.CopyMayNotRead)
	}
	switch fileKind(st) {
	case unix.S_IFDIR:
		return c.copyDir(e, fs.FileMode(st.Mode).Perm())
	case unix.S_IFREG:
		return c.copyFile(e)
	case unix.S_IFLNK:
		return c.copyLink(e)
	default:
		return c.refuseStep(e, reason.CopyNotRegular)
	}
}

func (c *copier) refuseStep(e step, code reason.Code) error {
	why := reason.New(code)
	if e.top {
		return tools.Refused(
			reason.New(reason.NotCopied, quoteName(c.displayPath(e.src.joinName(e.name)))).With(why), "",
		)
	}
	c.skipFile(e.src.joinName(e.name), why.String())
	return nil
}

func (c *copier) copyLink(e step) error {
	target, err := e.src.readLink(e.name)
	if err != nil {
		return err
	}
	if !c.staysInside(target, e.final) {
		return c.refuseStep(e, reason.CopyLeadsOut)
	}
	if err := unix.Symlinkat(target, e.dst.fd(), e.as); err != nil {
		return &fs.PathError{Op: "symlinkat", Path: e.final, Err: err}
	}
	return nil
}

func (c *copier) copyDir(e step, mode fs.FileMode) error {
	if e.depth > maxDepth {
		return failedError(
			"", "%s is nested deeper than %d directories", quoteName(c.displayPath(e.src.path)), maxDepth,
		)
	}
	src, err := e.src.openSub(e.name)
	if err != nil {
		return err
	}
	defer src.close()
	if err := unix.Mkdirat(e.dst.fd(), e.as, 0o700); err != nil {
		return &fs.PathError{Op: "mkdirat", Path: e.final, Err: err}
	}
	dst, err := e.dst.openSub(e.as)
	if err != nil {
		return err
	}
	defer dst.close()
	list, err := c.scope.listEntries(src)
	if err != nil {
		return err
	}
	final := dir{path: e.final}
	for _, entry := range list {
		name := entry.Name()
		if err := c.copyOne(step{
			src: src, name: name, dst: dst, as: name, final: final.joinName(name),
			depth: e.depth + 1,
		}); err != nil {
			return err
		}
	}
	return dst.f.Chmod(mode)
}

func (c *copier) copyFile(e step) error {
	in, st, err := c.openFile(e.src, e.name)
	if err != nil {
		var own *tools.Error
		if errors.As(err, &own) && !e.top {
			c.skipFile(e.src.joinName(e.name), reason.New(reason.CopyMayNotRead).String())
			return nil
		}
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading
	if st.Size > c.left {
		return c.tooMuch()
	}
	out, err := e.dst.openName(e.as, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, newMode)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(contextReader{c.scope, in}, c.left+1)) // it may grow while it is read
	if err == nil && n > c.left {
		err = c.tooMuch()
	}
	if err == nil {
		err = out.Chmod(fs.FileMode(st.Mode).Perm())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	c.left -= n
	c.files++
	return nil
}

func (c *copier) tooMuch() error {
	if c.full != nil {
		return c.full
	}
	return failedError("Copy less at once.", "one call copies at most %d bytes", c.MaxCopy)
}

// contextReader fails when the call is cancelled.
type contextReader struct {
	s *scope
	r io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(b []byte) (int, error) {
	if err := r.s.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
