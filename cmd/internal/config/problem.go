package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong, or in Config.Warnings strange, about the configuration.
type Problem struct {
	File string // config file; "" when the problem is not in a file
	Line int    // line in File, from 1; 0 when it has none
	Key  string // key, or name of an environment variable; "" when the problem is about the whole file
	Text string // what is wrong and what is allowed; never holds a secret
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

// sorted orders by line; what has no line comes last, in the order it was found.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Compare(a.Line, b.Line)
	})
	return p
}

// Origin says where a value comes from.
type Origin struct {
	File string // config file
	Line int    // line in File
	Env  string // environment variable
	Flag string // command line flag, by the name of the key it sets
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

// problem puts a text about key where the value came from: its line in the file, or its variable.
func (o Origin) problem(key, text string) Problem {
	if o.Env != "" {
		return Problem{Key: o.Env, Text: text}
	}
	return Problem{File: o.File, Line: o.Line, Key: key, Text: text}
}

// Problem puts a text about key where its value came from: the line of the file, or the variable. A key that nobody set
// stands where what holds it does.
func (c *Config) Problem(key, text string) Problem { return c.place(key).problem(key, text) }

// Set reports whether the file, the environment or a flag sets key.
func (c *Config) Set(key string) bool {
	_, ok := c.origins[key]
	return ok
}

// Sorted orders by line; what has no line comes last, in the order it was found.
func (p Problems) Sorted() Problems { return p.sorted() }

// Entry appends the name of an entry to the key of its table, in quotes where it needs them.
func Entry(table, name string) string { return join(table, name) }
