package shell

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// left says for the model what differs from the snapshot, without touching it: what a failed command leaves behind is
// half of something.
func (s *snapshot) left() string {
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
		case s.differs(e, info):
			changed = append(changed, e.path)
		}
	}
	var created []string
	s.created(".", &created)
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

// someOf names the first few of a list.
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

// differs says whether what is at the place of an entry is something else now. The times of a directory do not count:
// what is in it is looked at itself.
func (s *snapshot) differs(e *entry, info fs.FileInfo) bool {
	switch {
	case info.Mode() != e.mode:
		return true
	case e.mode&fs.ModeSymlink != 0:
		target, err := s.root.Readlink(e.path)
		return err != nil || target != e.target
	case e.mode.IsRegular():
		return !e.id.untouched(info) && (info.Size() != e.size || !s.sameContents(e)) || e.fresh && !s.sameContents(e)
	default:
		return false
	}
}

// created lists what is in dir and was not there; of a new directory only itself.
func (s *snapshot) created(dir string, list *[]string) {
	names, err := s.list(dir)
	if err != nil {
		return // locked by the command: the directory itself counts as changed
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
			s.created(path, list)
		}
	}
}
