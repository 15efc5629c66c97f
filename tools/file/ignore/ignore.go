// Package ignore matches paths with the patterns of .gitignore files, nested ones included, as git does (gitignore(5)).
// It reads no files itself.
package ignore

import (
	"bytes"
	"strings"
)

// Limits of one .gitignore file; what is beyond them is not looked at.
const (
	MaxBytes    = 1 << 20
	maxPatterns = 10_000
	maxPattern  = 4096
)

// List holds the patterns of one directory's .gitignore and of those above it. It is immutable; nil ignores nothing.
type List struct {
	above    *List
	dir      string // of the file, relative to the top of the walk, with / at its end; "" = the top
	patterns []pattern
}

// Below adds the .gitignore in dir (slash-separated, relative to the top, "" = the top) to the patterns that hold above
// it.
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

// Ignored says whether a path (slash-separated, relative to the top) is ignored by name. The directories above it are
// not looked at: what lies in an ignored directory is ignored whatever its own name says, so a walk does not enter one.
func (l *List) Ignored(path string, isDir bool) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for ; l != nil; l = l.above {
		rel, ok := strings.CutPrefix(path, l.dir)
		if !ok {
			continue
		}
		for i := len(l.patterns) - 1; i >= 0; i-- { // the last one that matches decides
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
	anchored         bool // matched with the whole path, not with the last name
	kind             kind
	text             string
	expr             *expression
}

type kind int

const (
	literal kind = iota
	suffix       // "*" and then a literal
	wild
)

// parse reads one line; ok is false when it says nothing.
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
			return p, false // git matches nothing with a malformed pattern
		}
		p.kind, p.expr = wild, expr
	}
	return p, true
}

// trimSpaces removes spaces at the end that no backslash protects.
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
