package file

import (
	"path/filepath"

	"github.com/zephbot/zephbot/tools"
)

// changes returns what a call changes that writes to or removes these places.
func (s *scope) changes(places ...place) (tools.Changes, error) {
	var c tools.Changes
	for _, p := range places {
		path, err := s.outermost(p)
		if err != nil {
			return c, err
		}
		c.Files = append(c.Files, tools.Area{Root: p.root, Paths: []string{path}})
	}
	return c, nil
}

// outermost returns the path of a place or, if it does not exist, of the outermost directory that would be made for it.
func (s *scope) outermost(p place) (string, error) {
	path := p.abs
	if p.exists() || p.isRoot() {
		return path, nil
	}
	for dir := p.parent(); dir != p.root; dir = filepath.Dir(dir) {
		above, err := s.resolve(dir, false)
		if err != nil {
			return "", err
		}
		if above.exists() {
			break
		}
		path = dir
	}
	return path, nil
}
