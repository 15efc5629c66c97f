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

// restoreName is the prefix of the name of a file while it is being restored.
const restoreName = ".zephbot-restore-"

// rolledBack is the result of a rollback.
type rolledBack struct {
	restored int // files, links and directories that were restored
	deleted  int // created by the command; a directory with its contents counts as one
	failed   []notRestored
}

type notRestored struct {
	path string
	err  error
}

// rollBack restores the state of the snapshot. It continues after a failure and reports what it could not restore.
func (s *snapshot) rollBack() rolledBack {
	var done rolledBack
	if info, err := s.root.Stat("."); err == nil && info.Mode() != s.mode {
		if err := s.root.Chmod(".", s.mode); err != nil {
			done.failed = append(done.failed, notRestored{".", err})
		}
	}
	s.pruneCreated(".", &done)
	linked := map[identity]string{} // one restored name of each inode that has several names
	var dirs []int
	for i := range s.entries {
		e := &s.entries[i]
		if !s.inScope(e.path) {
			continue
		}
		changed, err := s.restoreEntry(e, linked)
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
	for _, i := range slices.Backward(dirs) { // last, because changes in a directory change its time
		if err := s.settleDir(&s.entries[i]); err != nil {
			done.failed = append(done.failed, notRestored{s.entries[i].path, err})
		}
	}
	return done
}

// pruneCreated deletes what was created since, and what is of another kind now.
func (s *snapshot) pruneCreated(dir string, done *rolledBack) {
	names, err := s.listNames(dir)
	if err != nil && dir != "." { // a command may have removed our permission
		if err = s.root.Chmod(dir, 0o700); err == nil {
			names, err = s.listNames(dir)
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
			continue // if it is gone, that is right; otherwise restore will fail
		}
		if stays, deeper := s.staysThere(path, info); stays {
			if deeper {
				s.pruneCreated(path, done)
			}
			continue
		}
		if err := s.removeTree(path); err != nil {
			done.failed = append(done.failed, notRestored{path, err})
			continue
		}
		if _, known := s.byPath[path]; !known {
			done.deleted++
		}
	}
}

// staysThere reports whether a rollback keeps what is at path, and whether it has to look inside.
func (s *snapshot) staysThere(path string, info fs.FileInfo) (stays, deeper bool) {
	i, known := s.byPath[path]
	switch {
	case known && s.entries[i].mode.Type() == info.Mode().Type():
		return true, info.IsDir()
	case info.IsDir() && s.aboveDenied(path): // somebody else created it meanwhile, above a denied path
		return true, true
	case !s.inScope(path):
		return true, info.IsDir() && len(s.opts.scope) > 0 // its contents may be in scope
	}
	return false, false
}

// removeTree deletes path with its contents, even if directories are read-only.
func (s *snapshot) removeTree(path string) error {
	err := s.root.RemoveAll(path)
	if err == nil {
		return nil
	}
	s.unlockDir(filepath.Dir(path))
	s.unlockAll(path)
	return s.root.RemoveAll(path)
}

// unlockDir makes a directory writable for us; restore restores its mode.
func (s *snapshot) unlockDir(dir string) {
	if info, err := s.root.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = s.root.Chmod(dir, info.Mode().Perm()|0o700) // if this fails, so does what follows
	}
}

// unlockAll unlocks a tree of directories.
func (s *snapshot) unlockAll(dir string) {
	info, err := s.root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	s.unlockDir(dir)
	names, err := s.listNames(dir)
	if err != nil {
		return
	}
	for _, n := range names {
		s.unlockAll(filepath.Join(dir, n))
	}
}

// restoreEntry restores one entry. changed reports whether there was anything to do.
func (s *snapshot) restoreEntry(e *entry, linked map[identity]string) (changed bool, err error) {
	info, err := s.root.Lstat(e.path)
	there := err == nil && info.Mode().Type() == e.mode.Type()
	if there {
		s.unlockDir(filepath.Dir(e.path))
	} else if err := s.makeParents(e.path); err != nil {
		return false, err
	}
	switch {
	case e.mode.IsDir():
		if there {
			return false, nil // directories get their mode and time at the end
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
		return false, nil // pipes, sockets and devices have no contents
	default:
		return false, fmt.Errorf("a %s cannot be made again", e.mode.Type())
	}
}

// restoreFile restores contents, mode, time and owner of a regular file.
func (s *snapshot) restoreFile(e *entry, info fs.FileInfo, there bool, linked map[identity]string) (bool, error) {
	many := e.id.links > 1
	if there && e.id.isUntouched(info) && info.Mode() == e.mode && (!e.fresh || s.sameContents(e)) {
		if many {
			linked[e.id.inodeOnly()] = e.path
		}
		return false, nil
	}
	if first, ok := linked[e.id.inodeOnly()]; ok && many {
		return true, s.relinkEntry(e, first, there)
	}
	if e.copied == "" {
		return false, errors.New("its contents were not copied")
	}
	if err := s.rewriteFile(e, info, there); err != nil {
		return false, err
	}
	if many {
		linked[e.id.inodeOnly()] = e.path
	}
	return true, nil
}

// relinkEntry makes e a hard link to first, which is already restored.
func (s *snapshot) relinkEntry(e *entry, first string, there bool) error {
	if there {
		if sameFile(s.root, first, e.path) {
			return nil // already restored through its other name
		}
		if err := s.root.Remove(e.path); err != nil {
			return err
		}
	}
	return s.root.Link(first, e.path)
}

// rewriteFile restores the contents of a file. If the inode is still the same, it is kept, and with it the file's other
// names.
func (s *snapshot) rewriteFile(e *entry, info fs.FileInfo, there bool) error {
	if there && e.id.links > 1 && identifyFile(info).inodeOnly() == e.id.inodeOnly() {
		return s.overwriteFile(e)
	}
	return s.replaceFile(e)
}

// sameContents reports whether a file equals its copy.
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
		if err1 != nil || err2 != nil { // both ended, or one cannot be read
			return atEnd(err1) && atEnd(err2)
		}
	}
}

// atEnd reports whether an error of io.ReadFull is the end of the file.
func atEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// sameFile reports whether two names refer to the same file.
func sameFile(root *os.Root, a, b string) bool {
	x, err1 := root.Lstat(a)
	y, err2 := root.Lstat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// overwriteFile writes the contents into the existing file.
func (s *snapshot) overwriteFile(e *entry) error {
	_ = s.root.Chmod(e.path, 0o600) // if this fails, so does opening the file
	f, err := s.root.OpenFile(e.path, os.O_WRONLY|os.O_TRUNC|nonblock, 0)
	if err != nil {
		return err
	}
	return s.fillFile(f, e, e.path)
}

// replaceFile replaces whatever is at the path by a new file with the contents.
func (s *snapshot) replaceFile(e *entry) error {
	tmp := filepath.Join(filepath.Dir(e.path), restoreName+e.copied)
	if err := s.root.RemoveAll(tmp); err != nil {
		return err
	}
	f, err := s.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := s.fillFile(f, e, tmp); err != nil {
		return errors.Join(err, s.root.Remove(tmp))
	}
	if err := s.root.Rename(tmp, e.path); err != nil {
		return errors.Join(err, s.root.Remove(tmp))
	}
	return nil
}

// fillFile writes contents, owner, mode and time of e into f, which is at path, and closes f.
func (s *snapshot) fillFile(f *os.File, e *entry, path string) error {
	src, err := os.Open(filepath.Join(s.store, e.copied))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = io.Copy(f, src)
	if err = errors.Join(err, src.Close(), f.Close()); err != nil {
		return err
	}
	return s.setAttributes(e, path)
}

// setAttributes sets owner, mode and time of path to those of e. We remain the owner if we are
// not permitted to give files away.
func (s *snapshot) setAttributes(e *entry, path string) error {
	if info, err := s.root.Lstat(path); err == nil {
		if now := identifyFile(info); now.uid != e.id.uid || now.gid != e.id.gid {
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

// settleDir restores mode and time of a directory if they differ.
func (s *snapshot) settleDir(e *entry) error {
	info, err := s.root.Lstat(e.path)
	if err != nil {
		return err
	}
	if info.Mode() == e.mode && info.ModTime().Equal(e.mtime) {
		return nil
	}
	return s.setAttributes(e, e.path)
}

// makeParents creates missing directories above path. Those in scope were restored before.
func (s *snapshot) makeParents(path string) error {
	dir := filepath.Dir(path)
	if dir == "." {
		return nil
	}
	s.unlockDir(dir)
	made := ""
	for part := range strings.SplitSeq(dir, string(filepath.Separator)) {
		made = filepath.Join(made, part)
		info, err := s.root.Lstat(made)
		if err == nil && info.IsDir() {
			continue
		}
		// something else is there and is not in scope: it is replaced, because otherwise the file could not be restored
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
