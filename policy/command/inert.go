package command

import "sync"

// inertNames lists the programs that can neither change anything nor run another program, whatever their words. What
// they read is what their words name.
const inertNames = ": true false echo pwd cd ls cat head tail wc cut tr tac rev nl basename dirname sleep seq " +
	"grep egrep fgrep"

var inertPrograms = sync.OnceValue(func() map[string]bool { return wordSet(inertNames) })

// Inert reports whether a script does nothing but read files that its words name, whatever its programs make of their
// options: each command is one of a few programs, by its own name, and the shell changes
// a word only to names of files.
func (s *Script) Inert() bool {
	if !s.Certain() || !redirectsNothing(s.Redirects) {
		return false
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.Dynamic || len(c.Via) > 0 || c.Name != c.Words[0] || !inertPrograms()[c.Name] {
			return false
		}
		for j := range c.Words {
			if c.markOf(j)&^MarkPattern != 0 {
				return false
			}
		}
	}
	return len(s.Commands) > 0
}
