package redact

import (
	"regexp"
	"sync"
)

// pattern is an expression that is compiled when a text first needs it: compiling all of them takes milliseconds of
// every start and 2 MB, and most processes meet few of the shapes. It is safe for concurrent use.
type pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// lazily makes a pattern. A text that does not compile panics at its first use; a test compiles them all.
func lazily(text string) *pattern { return &pattern{text: text} }

// get returns the compiled expression.
func (p *pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.text) })
	return p.re
}

func (p *pattern) matches(s string) bool { return p.get().MatchString(s) }
