package policy

// What runs without a rule and without a question: commands that only read, as far as a sandbox or their words keep
// them to it.

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/command"
)

// Unasked says which commands run without a rule and without a question, where the kernel keeps them from changing
// anything (tools.shell.unasked).
type Unasked string

// What runs unasked.
const (
	UnaskedNothing  Unasked = "nothing"  // also ""
	UnaskedReading  Unasked = "reading"  // commands that evidently only read
	UnaskedConfined Unasked = "confined" // every command, to see whether reading is enough for it
)

// readsFreely reports whether a script consists of reading commands without redirections and indirections, and all its
// paths are inside. What keeps its promise is the kernel; without it, only programs pass that can do nothing else.
func (r *shellRules) readsFreely(c *call, sc *command.Script) bool {
	if r.unasked != UnaskedReading && r.unasked != UnaskedConfined || len(c.req.InsidePaths) == 0 {
		return false
	}
	if !c.req.Confined {
		return !c.req.Outside && len(sc.Redirects) == 0 && sc.Inert() && c.plainInside(sc)
	}
	paths, ok := command.ReadsOnly(*sc)
	if !ok {
		return false
	}
	for _, p := range paths {
		if !within(c.req.InsidePaths, p) {
			return false
		}
	}
	return true
}

// plainReaders are the programs that run without a question where nothing but their words keeps them from harm.
var plainReaders = []string{"ls", "cat", "head", "tail", "wc", "pwd"} //nolint:gochecknoglobals // a table

// plainInside reports whether a script is made of plainReaders with plain words, the disk was inspected, and every word
// but short options leads to a place inside, links included.
func (c *call) plainInside(sc *command.Script) bool {
	for i := range sc.Commands {
		cmd := &sc.Commands[i]
		if !slices.Contains(plainReaders, cmd.Name) {
			return false
		}
		for j, word := range cmd.Words[1:] {
			switch {
			case cmd.Marks != nil && cmd.Marks[j+1] != 0:
				return false
			case strings.HasPrefix(word, "-"):
				if !plainOption(word) {
					return false
				}
			case !c.leadsInside(word):
				return false
			}
		}
	}
	return true
}

// plainOption reports whether a word is one or more options of a letter, or a number.
func plainOption(word string) bool {
	return strings.Trim(word[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// leadsInside reports whether a path was looked up and is inside.
func (c *call) leadsInside(path string) bool {
	if !strings.HasPrefix(path, "/") {
		path = strings.TrimSuffix(c.dir(), "/") + "/" + path
	}
	real, looked := c.req.Files[path]
	return looked && !slices.ContainsFunc(real, func(p string) bool { return !within(c.req.InsidePaths, p) })
}

// evidentlyWrites reports whether a script writes by a redirection, so that there is no use in trying it.
func evidentlyWrites(sc *command.Script) bool {
	_, writes := written(sc)
	return writes
}

func familiar(input string, inside []string) string {
	if len(inside) == 0 || len(inside[0]) < 2 {
		return input
	}
	if input == inside[0] {
		return "."
	}
	return strings.ReplaceAll(input, inside[0]+"/", "")
}
