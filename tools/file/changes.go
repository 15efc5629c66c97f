package file

import (
	"path/filepath"

	"github.com/zephbot/zephbot/tools"
)

// changesOf returns what a call changes that writes to or removes these places.
func (s *scope) changesOf(places ...place) (tools.Changes, error) {
	var c tools.Changes
	for _, p := range places {
		path, err := s.outermostNew(p)
		if err != nil {
			return c, err
		}
		c.Files = append(c.Files, tools.Area{Root: p.root, Paths: []string{path}})
	}
	return c, nil
}

// outermostNew returns the path of a place or, if it does not exist, of the outermost
// directory that would be made for it.
func (s *scope) outermostNew(p place) (string, error) {
	path := p.abs
	if p.doesExist() || p.isRoot() {
		return path, nil
	}
	for dir := p.parent(); dir != p.root; dir = filepath.Dir(dir) {
		above, err := s.resolvePlace(dir, false)
		if err != nil {
			return "", err
		}
		if above.doesExist() {
			break
		}
		path = dir
	}
	return path, nil
}
