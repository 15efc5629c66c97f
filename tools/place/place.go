// Package place says where the tools of a conversation may work.
package place

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
)

// Set is the places of one kind of tools, commands or file tools. Safe for concurrent use.
type Set struct {
	workspace func(tools.Origin) (string, error)
	dirs      []string
	here      bool
}

// New reads a list of allowed paths: an empty one is the working directory of the conversation; a list replaces it, and
// here in the list means it. workspace gives that directory; path makes an entry absolute. The error is about an entry
// that is not there.
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

// Dirs are the directories that are allowed besides the working directory, or instead of it; canonical.
func (s Set) Dirs() []string { return s.dirs }

// Dir is the directory that a conversation's relative paths start at, and that its commands run in: the working
// directory where that is allowed, else the first allowed one.
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

// Roots are all places of a conversation, the one it starts at first.
func (s Set) Roots(o tools.Origin) ([]string, error) {
	dir, err := s.Dir(o)
	if err != nil {
		return nil, err
	}
	return append([]string{dir}, s.dirs...), nil
}
