package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid marks errors that are caused by the configuration: exit code 2.
var ErrInvalid = errors.New("configuration")

// Problem is one thing in the configuration that is wrong, or, in Config.Warnings, unusual.
type Problem struct {
	File string // config file; "" if the problem is not in a file
	Line int    // line in File, from 1; 0 = none
	Key  string // key, or name of an environment variable; "" if the problem is about the whole file
	Text string // what is wrong and what is allowed; never contains a secret
}

// String returns "file:line: key: text" without the parts that are empty.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is everything that is wrong with a configuration, in the order of the file. It is the error of Load.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// sorted sorts by line; problems without a line are last, in the order in which they were found.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Compare(a.Line, b.Line)
	})
	return p
}

// Origin is where a value comes from.
type Origin struct {
	File string // config file
	Line int    // line in File
	Env  string // environment variable
	Flag string // command line flag, by the name of the key that it sets
}

// String returns "default", "file:line", the name of the variable, or "flag".
func (o Origin) String() string {
	switch {
	case o.Flag != "":
		return "flag"
	case o.Env != "":
		return o.Env
	case o.File != "":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	default:
		return "default"
	}
}

// problem returns a Problem of key at the origin of its value: its line in the file, or its variable.
func (o Origin) problem(key, text string) Problem {
	if o.Env != "" {
		return Problem{Key: o.Env, Text: text}
	}
	return Problem{File: o.File, Line: o.Line, Key: key, Text: text}
}

// Problem returns a Problem of key at the origin of its value: the line in the file, or the variable. For a key that is
// not set, the origin is that of its table.
func (c *Config) Problem(key, text string) Problem { return c.place(key).problem(key, text) }

// Set reports whether the file, the environment or a flag sets key.
func (c *Config) Set(key string) bool {
	_, ok := c.origins[key]
	return ok
}

// Sorted sorts by line; problems without a line are last, in the order in which they were found.
func (p Problems) Sorted() Problems { return p.sorted() }

// Entry appends the name of an entry to the key of its table, in quotes if necessary.
func Entry(table, name string) string { return join(table, name) }
