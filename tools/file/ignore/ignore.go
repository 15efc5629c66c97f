// Package ignore matches paths against the patterns of .gitignore files, including nested ones, like git
// (gitignore(5)). It does not read files.
package ignore

import (
	"bytes"
	"strings"
)

// Limits of one .gitignore file; what exceeds them is ignored.
const (
	MaxBytes    = 1 << 20
	maxPatterns = 10_000
	maxPattern  = 4096
)

// List contains the patterns of one directory's .gitignore and of those above it. It is immutable; a nil List ignores
// nothing.
type List struct {
	above    *List
	dir      string // of the file, relative to the top of the walk and with / at the end; "" = the top
	patterns []pattern
}

// Below returns the list for dir (slash-separated, relative to the top, "" = the top): the patterns in content, and
// those that apply above it.
func (l *List) Below(dir string, content []byte) *List {
	if dir != "" {
		dir += "/"
	}
	next := &List{above: l, dir: dir}
	content = bytes.TrimPrefix(content[:min(len(content), MaxBytes)], []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(content) {
		if len(next.patterns) == maxPatterns {
			break
		}
		if p, ok := parse(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")); ok {
			next.patterns = append(next.patterns, p)
		}
	}
	if len(next.patterns) == 0 {
		return l
	}
	return next
}

// Ignored reports whether a path (slash-separated, relative to the top) is ignored by its own name. It does not check
// the directories above. Everything in an ignored directory is ignored, so a walk must not enter one.
func (l *List) Ignored(path string, isDir bool) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for ; l != nil; l = l.above {
		rel, ok := strings.CutPrefix(path, l.dir)
		if !ok {
			continue
		}
		for i := len(l.patterns) - 1; i >= 0; i-- { // the last match decides
			p := &l.patterns[i]
			if p.dirOnly && !isDir {
				continue
			}
			if p.matches(rel, base) {
				return !p.negated
			}
		}
	}
	return false
}

// pattern is one line.
type pattern struct {
	negated, dirOnly bool
	anchored         bool // matches the whole path rather than the last component
	kind             kind
	text             string
	expr             *expression
}

type kind int

const (
	literal kind = iota
	suffix       // "*" followed by a literal
	wild
)

// parse parses one line. ok is false when it contains no pattern.
func parse(line string) (p pattern, ok bool) {
	if strings.HasPrefix(line, "#") || len(line) > maxPattern {
		return p, false
	}
	line = trimSpaces(line)
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	p.text = line
	switch {
	case !strings.ContainsAny(line, `*?[\`):
		p.kind = literal
	case !p.anchored && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`):
		p.kind, p.text = suffix, line[1:]
	default:
		expr, ok := compile(line, p.anchored)
		if !ok {
			return p, false // in git, a malformed pattern matches nothing
		}
		p.kind, p.expr = wild, expr
	}
	return p, true
}

// trimSpaces removes trailing spaces that are not escaped by a backslash.
func trimSpaces(line string) string {
	end := 0 // after the last character that counts
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

func (p *pattern) matches(rel, base string) bool {
	name := base
	if p.anchored {
		name = rel
	}
	switch p.kind {
	case literal:
		return name == p.text
	case suffix:
		return strings.HasSuffix(name, p.text)
	default:
		return p.expr.match(name)
	}
}
