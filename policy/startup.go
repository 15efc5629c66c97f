package policy

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
)

// startup is a file or directory that a program executes or obeys when it starts: writing it determines what the next
// command runs. The home directory of commands is the session's working directory, so the file tools can reach such
// files.
type startup struct {
	// name is the path from a home directory or from the top of a repository, in lower case. With a final "/" it is a
	// directory with everything below it.
	name string
	// runs says which program obeys it.
	runs string
}

// startupText is the table; its first lines describe the format.
//
//go:embed startup.txt
var startupText string

// startupFiles returns the table. A row with a mistake, which a test finds, is left out.
var startupFiles = sync.OnceValue(func() []startup {
	list, _ := readStartup(startupText)
	return list
})

// readStartup reads a table. The error names what is wrong by line.
func readStartup(text string) ([]startup, error) {
	var list []startup
	var errs []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		runs, names, ok := strings.Cut(line, ": ")
		if !ok || names != strings.ToLower(names) {
			errs = append(errs, fmt.Errorf(
				"startup.txt:%d: a row is a program, a colon and names in lower case", number,
			))
			continue
		}
		for name := range strings.FieldsSeq(names) {
			list = append(list, startup{name: name, runs: runs})
		}
	}
	return list, errors.Join(errs...)
}

// startups is the table, indexed by the end of the path.
type startups struct {
	files map[string]string // last component → name of its entry, see find
	all   []startup
}

func newStartups() startups {
	s := startups{files: map[string]string{}, all: startupFiles()}
	for _, e := range s.all {
		for part := range strings.SplitSeq(strings.TrimSuffix(e.name, "/"), "/") {
			s.files[part] = e.runs
		}
	}
	return s
}

// find returns which program obeys a file at p; "" for none. With carries, a directory above such a file counts too,
// because moving or copying a directory brings its files along.
func (s *startups) find(p string, carries bool) string {
	folded := "/" + strings.Trim(foldText(path.Clean(p)), "/")
	known := false
	for part := range strings.SplitSeq(folded[1:], "/") {
		if _, known = s.files[part]; known {
			break
		}
	}
	if !known {
		return ""
	}
	for _, e := range s.all {
		name, dir := strings.CutSuffix(e.name, "/")
		name = "/" + name
		switch {
		case strings.HasSuffix(folded, name), dir && strings.Contains(folded, name+"/"):
			return e.runs
		case carries && above(folded, name):
			return e.runs
		}
	}
	return ""
}

// above reports whether p ends in a directory that leads to the entry: /w/.git leads to /.git/hooks.
func above(p, entry string) bool {
	for i := 1; i < len(entry); i++ {
		if entry[i] == '/' && strings.HasSuffix(p, entry[:i]) {
			return true
		}
	}
	return false
}

// startup asks if an allowed call would write something that a later command obeys.
func (s *Set) startup(c *call) (answer, bool) {
	targets := c.inputs
	carries := false
	switch c.act {
	case act.WritesFile, act.MakesDirectory:
	case act.MovesPath, act.CopiesPath:
		carries = true
		if len(targets) > 1 { // the first is the source
			targets = targets[1:]
		}
	default:
		return answer{}, false
	}
	for _, target := range targets {
		if a, found := s.obeyed(target, carries); found {
			return a, true
		}
	}
	return answer{}, false
}

// obeyed returns the question about one file.
func (s *Set) obeyed(target string, carries bool) (answer, bool) {
	runs := s.startups.find(target, carries)
	if runs == "" {
		return answer{}, false
	}
	return answer{
		effect: Ask,
		rule:   "built-in: a file that programs obey when they start",
		code:   reason.StartupFile,
		about:  &target,
		detail: runs,
	}, true
}
