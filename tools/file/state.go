package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// maxHashed is how many bytes of a file are read to know its state. Of a longer one, and of one that may not be read,
// the inode, size and time of the last change are known.
const maxHashed = 64 << 20

// statesOf returns what is at some places.
func (s *scope) statesOf(places ...place) ([]tools.FileState, error) {
	var list []tools.FileState
	for _, p := range places {
		now, err := s.stateOf(p)
		if err != nil {
			return nil, err
		}
		list = append(list, tools.FileState{Path: p.abs, Before: now})
	}
	return list, nil
}

// asShown refuses a call that a person has approved, if something else is at its places than what that person saw.
func (s *scope) asShown(call *tools.Call, places ...place) error {
	if call.Shown == nil {
		return nil
	}
	now, err := s.statesOf(places...)
	if err != nil {
		return err
	}
	for i, p := range places {
		if len(call.Shown) != len(now) || call.Shown[i].Path != now[i].Path || call.Shown[i].Before != now[i].Before {
			return tools.Refused(
				reason.New(reason.FileChangedApproved, quoteName(p.given)),
				"Make the call again, so that the person is asked about the file as it is now.",
			)
		}
	}
	return nil
}

// stateOfText is the state of a file with this content.
func stateOfText(text string) string {
	h := sha256.Sum256([]byte(text))
	return "file " + hex.EncodeToString(h[:])
}

// stateOf returns the state of what is at p, see tools.FileState.
func (s *scope) stateOf(p place) (string, error) {
	if !p.doesExist() {
		return "", nil
	}
	if p.isRoot() {
		return "directory", nil // which is neither replaced nor removed
	}
	d, err := s.openParent(p)
	if err != nil {
		return "", systemError(err, "look at", p.given)
	}
	defer d.close()
	st, ok, err := d.statName(p.base())
	switch {
	case err != nil:
		return "", systemError(err, "look at", p.given)
	case !ok:
		return "", nil
	}
	switch fileKind(st) {
	case unix.S_IFLNK:
		target, err := d.readLink(p.base())
		return "link " + target, systemError(err, "look at", p.given)
	case unix.S_IFDIR:
		return s.treeState(p)
	case unix.S_IFREG:
		return s.fileState(p, st)
	}
	return statIdentity(st), nil
}

func (s *scope) fileState(p place, st unix.Stat_t) (string, error) {
	if s.ReadText != nil {
		if text, err := s.ReadText(s.ctx, p.abs); err == nil {
			return stateOfText(text), nil
		}
	}
	if st.Size > maxHashed {
		return statIdentity(st), nil
	}
	f, _, err := s.openContent(p)
	if err != nil { // its content may not be read
		return statIdentity(st), s.ctx.Err()
	}
	defer func() { _ = f.Close() }() // opened for reading
	h := sha256.New()
	if _, err := io.Copy(h, contextReader{s, io.LimitReader(f, maxHashed+1)}); err != nil {
		return "", systemError(err, "read", p.given)
	}
	return "file " + hex.EncodeToString(h.Sum(nil)), nil
}

// treeState returns the state of a directory with everything in it. Contents are not read.
func (s *scope) treeState(p place) (string, error) {
	top, err := s.dirAt(p.root, p.abs)
	if err != nil {
		return "", systemError(err, "look at", p.given)
	}
	defer top.close()
	h, n := sha256.New(), 0
	err = s.walkTree(top, 0, func(d dir, e fs.DirEntry) error {
		if n++; n > s.MaxEntries {
			return failedError(
				"Take a directory further down.", "%s holds more than %d files and directories",
				quoteName(p.given), s.MaxEntries,
			)
		}
		path := strings.TrimPrefix(d.joinName(e.Name()), p.abs)
		st, ok, err := d.statName(e.Name())
		if err != nil || !ok {
			return err
		}
		what := "directory" // what is in it is looked at
		if fileKind(st) != unix.S_IFDIR {
			what = statIdentity(st)
		}
		fmt.Fprintf(h, "%d:%s%s\n", len(path), path, what)
		return nil
	})
	return "directory " + hex.EncodeToString(h.Sum(nil)), err
}

// statIdentity is the state of something whose content is not read. Nobody can set the time of its last change.
func statIdentity(st unix.Stat_t) string {
	return fmt.Sprintf("inode %d:%d %o %d %d.%d", st.Dev, st.Ino, st.Mode, st.Size, st.Ctim.Sec, st.Ctim.Nsec)
}
