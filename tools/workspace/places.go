// Package workspace determines where the tools of a conversation may work, and how much they may store there.
package workspace

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
)

// Places is the places of one kind of tool: commands, or file tools. It is safe for concurrent use.
type Places struct {
	workspace func(tools.Origin) (string, error)
	dirs      []string
	here      bool
}

// NewPlaces reads a list of allowed paths. An empty list means the working directory of the conversation. A list
// replaces it, unless one of its entries is "." (here). workspace returns the working directory; path makes an entry
// absolute. The error names an entry that does not exist.
func NewPlaces(
	list []string, here string, workspace func(tools.Origin) (string, error), path func(string) string,
) (Places, error) {
	s := Places{workspace: workspace, here: len(list) == 0}
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
func (s Places) Dirs() []string { return s.dirs }

// Dir returns the directory in which a conversation's commands run and at which its relative paths start: the working
// directory if that is allowed, otherwise the first allowed directory.
func (s Places) Dir(o tools.Origin) (string, error) {
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
func (s Places) Roots(o tools.Origin) ([]string, error) {
	dir, err := s.Dir(o)
	if err != nil {
		return nil, err
	}
	return append([]string{dir}, s.dirs...), nil
}
