package apptest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// skillsDir begins the names of the parts that become files of skills.
const skillsDir = "skills/"

// skills writes the files of skills, once: a restart finds what the chat has made of them.
func (s *scene) skills() {
	for name, text := range s.parts {
		if strings.HasPrefix(name, skillsDir) {
			if err := s.skill(name, text); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// skill writes a file of a skill.
func (s *scene) skill(name, text string) error {
	path, mode := filepath.Join(s.dir, filepath.FromSlash(name)), os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode))
}
