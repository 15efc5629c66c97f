package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// restoreName begins the name of a file while it is being restored.
const restoreName = ".zephbot-restore-"

// rolledBack says what a rollback did.
type rolledBack struct {
	restored int // files, links and directories brought back or changed back
	deleted  int // that the command had made, directories with all that is in them as one
	failed   []notRestored
}

type notRestored struct {
	path string
	err  error
}

// rollback brings back the state of the snapshot. It goes on after a failure, and names what it could not restore.
func (s *snapshot) rollback() rolledBack {
	var done rolledBack
	if info, err := s.root.Stat("."); err == nil && info.Mode() != s.mode {
		if err := s.root.Chmod(".", s.mode); err != nil {
			done.failed = append(done.failed, notRestored{".", err})
		}
	}
	s.prune(".", &done)
	linked := map[identity]string{} // one restored name of each inode that has several
	var dirs []int
	for i := range s.entries {
		e := &s.entries[i]
		if !s.inScope(e.path) {
			continue
		}
		changed, err := s.restore(e, linked)
		switch {
		case err != nil:
			done.failed = append(done.failed, notRestored{e.path, err})
		case changed:
			done.restored++
		}
		if e.mode.IsDir() && err == nil {
			dirs = append(dirs, i)
		}
	}
	for _, i := range slices.Backward(dirs) { // last, because work in a directory changes its time
		if err := s.settleDir(&s.entries[i]); err != nil {
			done.failed = append(done.failed, notRestored{s.entries[i].path, err})
		}
	}
	return done
}

// prune deletes what was not there, and what is of another kind now.
func (s *snapshot) prune(dir string, done *rolledBack) {
	names, err := s.list(dir)
	if err != nil && dir != "." { // a command may have locked us out
		if err = s.root.Chmod(dir, 0o700); err == nil {
			names, err = s.list(dir)
		}
	}
	if err != nil {
		done.failed = append(done.failed, notRestored{dir, err})
		return
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := s.root.Lstat(path)
		if err != nil {
			continue // gone is what it should be, or restore will find out
		}
		if stays, deeper := s.stays(path, info); stays {
			if deeper {
				s.prune(path, done)
			}
			continue
		}
		if err := s.remove(path); err != nil {
			done.failed = append(done.failed, notRestored{path, err})
			continue
		}
		if _, known := s.byPath[path]; !known {
			done.deleted++
		}
	}
}

// stays says whether a rollback leaves what is at path, and whether it has to look at what is inside.
func (s *snapshot) stays(path string, info fs.FileInfo) (stays, deeper bool) {
	i, known := s.byPath[path]
	switch {
	case known && s.entries[i].mode.Type() == info.Mode().Type():
		return true, info.IsDir()
	case info.IsDir() && s.aboveDenied(path): // somebody else made it meanwhile, for what we must not touch
		return true, true
	case !s.inScope(path):
		return true, info.IsDir() && len(s.opts.scope) > 0 // what is inside may be in scope
	}
	return false, false
}

// remove deletes path with all that is in it, also where directories are locked.
func (s *snapshot) remove(path string) error {
	err := s.root.RemoveAll(path)
	if err == nil {
		return nil
	}
	s.unlock(filepath.Dir(path))
	s.unlockAll(path)
	return s.root.RemoveAll(path)
}

// unlock gives us the rights to change a directory; restore gives it its mode back.
func (s *snapshot) unlock(dir string) {
	if info, err := s.root.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = s.root.Chmod(dir, info.Mode().Perm()|0o700) // what follows fails if this does
	}
}

// unlockAll unlocks a directory tree.
func (s *snapshot) unlockAll(dir string) {
	info, err := s.root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	s.unlock(dir)
	names, err := s.list(dir)
	if err != nil {
		return
	}
	for _, n := range names {
		s.unlockAll(filepath.Join(dir, n))
	}
}

// restore brings one entry back; changed says whether there was anything to do.
func (s *snapshot) restore(e *entry, linked map[identity]string) (changed bool, err error) {
	info, err := s.root.Lstat(e.path)
	there := err == nil && info.Mode().Type() == e.mode.Type()
	if there {
		s.unlock(filepath.Dir(e.path))
	} else if err := s.parents(e.path); err != nil {
		return false, err
	}
	switch {
	case e.mode.IsDir():
		if there {
			return false, nil // its mode and time come last
		}
		return true, s.root.Mkdir(e.path, 0o700)
	case e.mode&fs.ModeSymlink != 0:
		if there {
			if target, err := s.root.Readlink(e.path); err == nil && target == e.target {
				return false, nil
			}
			if err := s.root.Remove(e.path); err != nil {
				return false, err
			}
		}
		return true, s.root.Symlink(e.target, e.path)
	case e.mode.IsRegular():
		return s.restoreFile(e, info, there, linked)
	case there:
		return false, nil // a pipe, socket or device has no contents
	default:
		return false, fmt.Errorf("a %s cannot be made again", e.mode.Type())
	}
}

// restoreFile brings the contents, mode, time and owner of a regular file back.
func (s *snapshot) restoreFile(e *entry, info fs.FileInfo, there bool, linked map[identity]string) (bool, error) {
	many := e.id.links > 1
	if there && e.id.untouched(info) && info.Mode() == e.mode && (!e.fresh || s.sameContents(e)) {
		if many {
			linked[e.id.inode()] = e.path
		}
		return false, nil
	}
	if first, ok := linked[e.id.inode()]; ok && many {
		return true, s.relink(e, first, there)
	}
	if e.copied == "" {
		return false, errors.New("its contents were not copied")
	}
	if err := s.rewrite(e, info, there); err != nil {
		return false, err
	}
	if many {
		linked[e.id.inode()] = e.path
	}
	return true, nil
}

// relink makes e another name of first, which is restored already.
func (s *snapshot) relink(e *entry, first string, there bool) error {
	if there {
		if sameFile(s.root, first, e.path) {
			return nil // restored under its other name
		}
		if err := s.root.Remove(e.path); err != nil {
			return err
		}
	}
	return s.root.Link(first, e.path)
}

// rewrite gives a file its contents back. One that is still the same inode keeps it, and so its other names.
func (s *snapshot) rewrite(e *entry, info fs.FileInfo, there bool) error {
	if there && e.id.links > 1 && identify(info).inode() == e.id.inode() {
		return s.overwrite(e)
	}
	return s.replace(e)
}

// sameContents says whether a file is what was copied of it.
func (s *snapshot) sameContents(e *entry) bool {
	if e.copied == "" {
		return false
	}
	now, err := openRegular(s.root, e.path)
	if err != nil {
		return false
	}
	defer func() { _ = now.Close() }() // opened for reading
	then, err := os.Open(filepath.Join(s.store, e.copied))
	if err != nil {
		return false
	}
	defer func() { _ = then.Close() }() // opened for reading
	a, b := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, err1 := io.ReadFull(now, a)
		m, err2 := io.ReadFull(then, b)
		if !bytes.Equal(a[:n], b[:m]) {
			return false
		}
		if err1 != nil || err2 != nil { // both at their ends, or one cannot be read
			return atEnd(err1) && atEnd(err2)
		}
	}
}

// atEnd says whether an error of io.ReadFull is the end of the file.
func atEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// sameFile says whether two names are one file.
func sameFile(root *os.Root, a, b string) bool {
	x, err1 := root.Lstat(a)
	y, err2 := root.Lstat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// overwrite writes the contents into the file that is there.
func (s *snapshot) overwrite(e *entry) error {
	_ = s.root.Chmod(e.path, 0o600) // opening fails if this does
	f, err := s.root.OpenFile(e.path, os.O_WRONLY|os.O_TRUNC|nonblock, 0)
	if err != nil {
		return err
	}
	return s.fill(f, e, e.path)
}

// replace puts a new file with the contents in the place of whatever is there.
func (s *snapshot) replace(e *entry) error {
	tmp := filepath.Join(filepath.Dir(e.path), restoreName+e.copied)
	if err := s.root.RemoveAll(tmp); err != nil {
		return err
	}
	f, err := s.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := s.fill(f, e, tmp); err != nil {
		return errors.Join(err, s.root.Remove(tmp))
	}
	if err := s.root.Rename(tmp, e.path); err != nil {
		return errors.Join(err, s.root.Remove(tmp))
	}
	return nil
}

// fill writes contents, owner, mode and time of e into f, which is at path; it closes f.
func (s *snapshot) fill(f *os.File, e *entry, path string) error {
	src, err := os.Open(filepath.Join(s.store, e.copied))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = io.Copy(f, src)
	if err = errors.Join(err, src.Close(), f.Close()); err != nil {
		return err
	}
	return s.dress(e, path)
}

// dress gives path the owner, mode and time of e. The owner is ours where we may not give files away.
func (s *snapshot) dress(e *entry, path string) error {
	if info, err := s.root.Lstat(path); err == nil {
		if now := identify(info); now.uid != e.id.uid || now.gid != e.id.gid {
			if err := s.root.Lchown(path, e.id.uid, e.id.gid); err != nil {
				return err
			}
		}
	}
	if err := s.root.Chmod(path, e.mode); err != nil {
		return err
	}
	return s.root.Chtimes(path, e.mtime, e.mtime)
}

// settleDir gives a directory its mode and time back, when they differ.
func (s *snapshot) settleDir(e *entry) error {
	info, err := s.root.Lstat(e.path)
	if err != nil {
		return err
	}
	if info.Mode() == e.mode && info.ModTime().Equal(e.mtime) {
		return nil
	}
	return s.dress(e, e.path)
}

// parents makes the directories above path that are gone. Their own entries, where in scope, came before.
func (s *snapshot) parents(path string) error {
	dir := filepath.Dir(path)
	if dir == "." {
		return nil
	}
	s.unlock(dir)
	made := ""
	for part := range strings.SplitSeq(dir, string(filepath.Separator)) {
		made = filepath.Join(made, part)
		info, err := s.root.Lstat(made)
		if err == nil && info.IsDir() {
			continue
		}
		// something else stands there, which is not in scope: it has to give way, or the file cannot come back
		if err == nil {
			if err := s.root.Remove(made); err != nil {
				return err
			}
		}
		perm := fs.FileMode(0o700)
		if i, ok := s.byPath[made]; ok {
			perm = s.entries[i].mode.Perm() | 0o700
		}
		if err := s.root.Mkdir(made, perm); err != nil {
			return err
		}
	}
	return nil
}
