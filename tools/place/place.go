// Package place determines where the tools of a conversation may work.
package place

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
)

// Set is the places of one kind of tool: commands, or file tools. It is safe for concurrent use.
type Set struct {
	workspace func(tools.Origin) (string, error)
	dirs      []string
	here      bool
}

// New reads a list of allowed paths. An empty list means the working directory of the conversation. A list replaces it,
// unless one of its entries is "." (here). workspace returns the working directory; path makes an entry absolute. The
// error names an entry that does not exist.
func New(list []string, here string, workspace func(tools.Origin) (string, error), path func(string) string) (Set, error) {
	s := Set{workspace: workspace, here: len(list) == 0}
	for _, entry := range list {
		if entry == here {
			s.here = true
			continue
		}
		real, err := filepath.EvalSymlinks(path(entry))
		if err != nil {
			return s, err
		}
		s.dirs = append(s.dirs, real)
	}
	return s, nil
}

// Dirs returns the allowed directories besides or instead of the working directory, as canonical paths.
func (s Set) Dirs() []string { return s.dirs }

// Dir returns the directory in which a conversation's commands run and at which its relative paths start: the working
// directory if that is allowed, otherwise the first allowed directory.
func (s Set) Dir(o tools.Origin) (string, error) {
	dir, err := s.workspace(o)
	if err != nil || s.here {
		return dir, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	if slices.ContainsFunc(s.dirs, func(root string) bool { return pathrule.Inside(root, real) }) {
		return dir, nil
	}
	return s.dirs[0], nil
}

// Roots returns all places of a conversation; the first is the one at which it starts.
func (s Set) Roots(o tools.Origin) ([]string, error) {
	dir, err := s.Dir(o)
	if err != nil {
		return nil, err
	}
	return append([]string{dir}, s.dirs...), nil
}
