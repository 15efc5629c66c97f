// Package lazyregexp compiles patterns on first use. Compiled at the start, those of the whole program took megabytes
// and milliseconds of each process, of which most never meets the texts that they are for.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a regular expression that is a part of the program. It is compiled at the first call of the result, which
// panics if it cannot be.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
