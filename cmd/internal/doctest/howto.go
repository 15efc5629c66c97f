package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Change is one thing that a page of instructions asks its reader to do: write a file, insert lines into
// one, copy one, or run a command.
type Change struct {
	Line    int    // of the page, counted from 1
	Command string // for a shell; "" = the change is of files

	file  string // that is written
	text  string // that is written or inserted
	mark  string // part of the line at which text is inserted; "" = the file is new
	above bool   // text is inserted above that line instead of below it
	from  string // the file that is copied to file; "" = none
}

var (
	newFile = regexp.MustCompile("New file `([^`]+)`:$")
	insert  = regexp.MustCompile("In `([^`]+)`, (above|below) the line with `([^`]+)`:$")
	copying = regexp.MustCompile("Copy `([^`]+)` to `([^`]+)`")
)

// Changes returns what a page asks for, in its order. A sentence that ends a paragraph says what is done with the block
// that follows it: "New file `PATH`:", "In `PATH`, below the line with `TEXT`:" (or above). "Copy `A` to `B`" copies a
// file, and each line of a block of a shell is a command. Other blocks are examples.
func Changes(page string) ([]Change, error) {
	var list []Change
	var pending *Change // waits for its block
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		language, fence := strings.CutPrefix(lines[i], "```")
		switch {
		case fence:
			first := i + 1
			for i++; i < len(lines) && lines[i] != "```"; i++ {
			}
			block := lines[first:min(i, len(lines))]
			switch {
			case pending != nil:
				pending.text = strings.Join(block, "\n") + "\n"
				list, pending = append(list, *pending), nil
			case slices.Contains(languages, language):
				for n, command := range block {
					list = append(list, Change{Line: first + n + 1, Command: command})
				}
			}
		case pending != nil && strings.TrimSpace(lines[i]) != "":
			return nil, fmt.Errorf("line %d: no block follows", pending.Line)
		default:
			if m := newFile.FindStringSubmatch(lines[i]); m != nil {
				pending = &Change{Line: i + 1, file: m[1]}
			} else if m := insert.FindStringSubmatch(lines[i]); m != nil {
				pending = &Change{Line: i + 1, file: m[1], above: m[2] == "above", mark: m[3]}
			} else if m := copying.FindStringSubmatch(lines[i]); m != nil {
				list = append(list, Change{Line: i + 1, from: m[1], file: m[2]})
			}
		}
	}
	return list, nil
}

// File returns the file that the change is of, relative to the root of the repository; "" for a command.
func (c *Change) File() string { return c.file }

// Apply makes a change of files below a directory; a command it leaves to the caller.
func (c *Change) Apply(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(c.file))
	switch {
	case c.Command != "":
		return nil
	case c.from != "":
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(c.from)))
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o600)
	case c.mark == "":
		if exists(path) {
			return fmt.Errorf("%s exists already", c.file)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(c.text), 0o600)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, c.mark) })
	if at < 0 {
		return fmt.Errorf("%s has no line with %q", c.file, c.mark)
	}
	if !c.above {
		at++
	}
	return os.WriteFile(path, []byte(strings.Join(slices.Insert(lines, at, c.text), "")), 0o600)
}

// Joined are commands of a page that are run as one.
type Joined struct {
	Line    int // of the first of them
	Command string
	Tests   []string // the beginnings of the names of tests that it must run
}

// testing is a command that runs tests that it names.
var testing = regexp.MustCompile(`^(.*\bgo test \S.*) -run '?([^']+)'?$`)

// Join returns the commands of a page in its order. Those that run tests of the same packages become one, in the place
// of the first, and a command that was there before is left out.
func Join(changes []Change) []Joined {
	var list []Joined
	at := map[string]int{}
	patterns := map[string][]string{}
	for _, c := range changes {
		key, pattern := c.Command, ""
		if m := testing.FindStringSubmatch(c.Command); m != nil {
			key, pattern = m[1]+" -v -run", m[2]
		}
		i, known := at[key]
		if c.Command == "" || known && pattern == "" {
			continue
		}
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, Joined{Line: c.Line, Command: key})
		}
		for one := range strings.SplitSeq(pattern, "|") {
			if one != "" && !slices.Contains(patterns[key], one) {
				patterns[key] = append(patterns[key], one)
				name, _, _ := strings.Cut(one, "/")
				list[i].Tests = append(list[i].Tests, name)
			}
		}
		if pattern != "" {
			list[i].Command = key + " '" + strings.Join(patterns[key], "|") + "'"
		}
	}
	return list
}
