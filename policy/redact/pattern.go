package redact

import (
	"regexp"
	"sync"
)

// pattern is an expression that is compiled on first use. Compiling all of them would take milliseconds at every start
// and 2 MB, and most processes need few of them. It is safe for concurrent use.
type pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// lazily returns a pattern. A text that does not compile panics on first use; a test compiles them all.
func lazily(text string) *pattern { return &pattern{text: text} }

// get returns the compiled expression.
func (p *pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.text) })
	return p.re
}

func (p *pattern) matches(s string) bool { return p.get().MatchString(s) }
