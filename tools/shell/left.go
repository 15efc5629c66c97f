package shell

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// leftNote returns a note for the model about what differs from the snapshot. It changes nothing. A failed command may
// leave its work half done.
func (s *snapshot) leftNote() string {
	var changed, deleted []string
	for i := range s.entries {
		e := &s.entries[i]
		if !s.inScope(e.path) {
			continue
		}
		info, err := s.root.Lstat(e.path)
		switch {
		case err != nil:
			deleted = append(deleted, e.path)
		case s.hasChanged(e, info):
			changed = append(changed, e.path)
		}
	}
	var created []string
	s.listCreated(".", &created)
	slices.Sort(created)
	if len(changed)+len(created)+len(deleted) == 0 {
		return "[compared with the snapshot: nothing has changed]"
	}
	var parts []string
	for _, p := range []struct {
		verb  string
		paths []string
	}{{"changed", changed}, {"created", created}, {"deleted", deleted}} {
		if len(p.paths) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(p.paths), p.verb, someOf(p.paths)))
		}
	}
	return "[compared with the snapshot, not rolled back: " + strings.Join(parts, ", ") + "]"
}

// someOf joins the first few names of a list.
func someOf(paths []string) string {
	named := make([]string, 0, maxNamed)
	for _, p := range paths[:min(len(paths), maxNamed)] {
		named = append(named, fmt.Sprintf("%q", p))
	}
	if more := len(paths) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(named, ", ")
}

// hasChanged reports whether the file at the place of an entry is now different. The times of a directory do not count,
// because its contents are compared one by one.
func (s *snapshot) hasChanged(e *entry, info fs.FileInfo) bool {
	switch {
	case info.Mode() != e.mode:
		return true
	case e.mode&fs.ModeSymlink != 0:
		target, err := s.root.Readlink(e.path)
		return err != nil || target != e.target
	case e.mode.IsRegular():
		return !e.id.isUntouched(info) && (info.Size() != e.size || !s.sameContents(e)) || e.fresh && !s.sameContents(e)
	default:
		return false
	}
}

// listCreated appends what is new in dir. Of a new directory it appends only the directory itself.
func (s *snapshot) listCreated(dir string, list *[]string) {
	names, err := s.listNames(dir)
	if err != nil {
		return // locked by the command: the directory itself is reported as changed
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := s.root.Lstat(path)
		if err != nil {
			continue
		}
		_, known := s.byPath[path]
		if !known && s.inScope(path) {
			*list = append(*list, path)
			continue
		}
		if info.IsDir() && (known || len(s.opts.scope) > 0) {
			s.listCreated(path, list)
		}
	}
}
