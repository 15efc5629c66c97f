package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
)

// openContent opens a regular file whose content may be read, and checks the file that was actually opened.
func (s *scope) openContent(p place) (*os.File, unix.Stat_t, error) {
	var none unix.Stat_t
	switch {
	case !p.doesExist():
		return nil, none, s.missingError(p)
	case p.isDir():
		return nil, none, failedError(
			"Use list_directory to see what is in it.", "%s is a directory", quoteName(p.given),
		)
	case !p.isRegular():
		return nil, none, failedError("", "%s is %s, not a regular file", quoteName(p.given), kindName(p.info.mode))
	}
	if err := s.checkDenied(p.abs, p.given); err != nil {
		return nil, none, err
	}
	d, err := s.openParent(p)
	if err != nil {
		return nil, none, systemError(err, "open", p.given)
	}
	defer d.close()
	f, st, err := s.openFile(d, p.base())
	if err != nil {
		return nil, none, systemError(err, "read", p.given)
	}
	return f, st, nil
}

// checkReadable returns the error with which reading the content of a file would be refused, without reading it.
func (s *scope) checkReadable(p place) error {
	f, _, err := s.openContent(p)
	if err != nil {
		return err
	}
	return f.Close()
}

// openFile opens a regular file in d for reading. The caller has checked that its path may be read. openFile checks
// that it is not another name of a file that must not be read.
func (s *scope) openFile(d dir, name string) (*os.File, unix.Stat_t, error) {
	f, err := d.openName(name, unix.O_RDONLY, 0)
	var st unix.Stat_t
	if err != nil {
		return nil, st, err
	}
	if err = unix.Fstat(int(f.Fd()), &st); err == nil {
		switch {
		case fileKind(st) != unix.S_IFREG:
			err = failedError("", "%s is not a regular file", quoteName(s.displayPath(d.joinName(name))))
		case st.Nlink > 1 && s.otherName(st):
			err = refusedError("Copy it by another way if you need it, so that it has one name.",
				reason.LinkedNotRead, quoteName(s.displayPath(d.joinName(name))))
		}
	}
	if err != nil {
		_ = f.Close() // opened for reading
		return nil, st, err
	}
	return f, st, nil
}

// kindName returns what kind of file a mode is, for people.
func kindName(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a file"
	}
}

// inode identifies a file independently of its name.
type inode struct{ dev, ino uint64 }

func inodeOf(st unix.Stat_t) inode { return inode{uint64(st.Dev), st.Ino} }

// linkIndex contains the files below the denied paths that have several names.
type linkIndex struct {
	files    map[inode]bool
	complete bool
}

// otherName reports whether a file with several names may be one that must not be read. With deny globs this cannot be
// excluded, because they may match anywhere on the disk.
func (s *scope) otherName(st unix.Stat_t) bool {
	if s.rules {
		return true
	}
	if len(s.denied) == 0 {
		return false
	}
	index := s.links()
	return !index.complete || index.files[inodeOf(st)]
}

var errEnough = errors.New("enough")

// indexLinks searches the denied paths, except for the workspace. This is done at most once per call, and only when the
// call meets a file with several names.
func (s *scope) indexLinks() *linkIndex {
	index := &linkIndex{files: map[inode]bool{}, complete: true}
	seen := 0
	for _, denied := range s.denied {
		err := filepath.WalkDir(denied.path, func(path string, e fs.DirEntry, err error) error {
			seen++
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case seen > s.MaxEntries:
				return errEnough
			case s.ctx.Err() != nil:
				return s.ctx.Err()
			case e.IsDir() && path == s.cwd.path:
				return fs.SkipDir
			case !e.Type().IsRegular():
				return nil
			}
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				return fmt.Errorf("look at a denied path: %w", err)
			}
			if st.Nlink > 1 {
				index.files[inodeOf(st)] = true
			}
			return nil
		})
		if err != nil {
			index.complete = false
		}
	}
	return index
}
