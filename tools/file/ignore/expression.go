package ignore

import (
	"fmt"
	"regexp"
	"strings"
)

// expression is a wildcard pattern as a regular expression over bytes: git compares bytes, not characters, and Go's
// expressions take linear time.
type expression struct{ re *regexp.Regexp }

func (e *expression) match(name string) bool { return e.re.MatchString(widen(name)) }

// widen converts every byte to one character, so that an expression over characters matches bytes.
func widen(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			var b strings.Builder
			for j := range len(s) {
				b.WriteRune(rune(s[j]))
			}
			return b.String()
		}
	}
	return s
}

// compile translates a pattern of git's wildmatch. With path, * and ? stop at /, and ** between slashes does not. It
// returns false for a pattern that matches nothing.
func compile(pattern string, path bool) (*expression, bool) {
	t := translator{in: pattern, path: path}
	t.out.WriteString(`\A(?s:`)
	for t.at < len(t.in) {
		if !t.next() {
			return nil, false
		}
	}
	t.out.WriteString(`)\z`)
	re, err := regexp.Compile(t.out.String())
	if err != nil { // too large: nobody writes such a pattern by hand
		return nil, false
	}
	return &expression{re}, true
}

type translator struct {
	in   string
	at   int
	path bool
	out  strings.Builder
}

func (t *translator) next() bool {
	c := t.in[t.at]
	switch c {
	case '*':
		t.stars()
	case '?':
		t.out.WriteString(t.one())
		t.at++
	case '[':
		return t.class()
	case '\\':
		t.at++
		if t.at == len(t.in) {
			return false
		}
		t.byte(t.in[t.at])
		t.at++
	default:
		t.byte(c)
		t.at++
	}
	return true
}

func (t *translator) byte(c byte) { fmt.Fprintf(&t.out, `\x{%02x}`, c) }

func (t *translator) one() string {
	if t.path {
		return "[^/]"
	}
	return "."
}

// stars translates a sequence of stars.
func (t *translator) stars() {
	start := t.at
	for t.at < len(t.in) && t.in[t.at] == '*' {
		t.at++
	}
	n := t.at - start
	rest := t.in[t.at:]
	opens := start == 0 || t.in[start-1] == '/'
	closes := rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)
	switch {
	case !t.path:
		t.out.WriteString(".*")
	case n >= 2 && opens && closes && strings.HasPrefix(rest, "/"): // "**/": any number of directories, including none
		t.out.WriteString("(?:.*/)?")
		t.at++
	case n >= 2 && opens && closes:
		t.out.WriteString(".*")
	default:
		t.out.WriteString("[^/]*")
	}
}

// named returns a POSIX class in the C locale.
func named(name string) (string, bool) {
	switch name {
	case "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit":
		return "[:" + name + ":]", true
	}
	return "", false
}

// class translates [abc], [!a-z] and [[:digit:]].
func (t *translator) class() bool {
	i := t.at + 1
	negated := i < len(t.in) && (t.in[i] == '!' || t.in[i] == '^')
	if negated {
		i++
	}
	var set strings.Builder
	for first := true; ; first = false {
		if i >= len(t.in) {
			return false // not closed: matches nothing
		}
		if t.in[i] == ']' && !first {
			break
		}
		n, ok := classItem(t.in[i:], &set)
		if !ok {
			return false
		}
		i += n
	}
	t.at = i + 1
	t.writeClass(set.String(), negated)
	return true
}

// writeClass writes the class. With path it never matches a slash.
func (t *translator) writeClass(set string, negated bool) {
	switch {
	case negated && t.path:
		t.out.WriteString("[^/" + set + "]")
	case negated && set == "":
		t.out.WriteString(".")
	case negated:
		t.out.WriteString("[^" + set + "]")
	case set == "":
		t.out.WriteString(`[^\x{00}-\x{10ffff}]`) // an empty range: matches nothing
	default:
		t.out.WriteString("[" + set + "]")
	}
}

// classItem translates the first item of a class: a named class, a range or a byte. n is the number of bytes it read.
func classItem(s string, set *strings.Builder) (n int, ok bool) {
	if strings.HasPrefix(s, "[:") {
		if name, _, closed := strings.Cut(s[2:], "]"); closed && strings.HasSuffix(name, ":") {
			class, known := named(strings.TrimSuffix(name, ":"))
			set.WriteString(class)
			return len(name) + 3, known
		}
	}
	lo, n, ok := classByte(s)
	if !ok {
		return 0, false
	}
	hi := lo
	if len(s) > n+1 && s[n] == '-' && s[n+1] != ']' {
		c, m, ok := classByte(s[n+1:])
		if !ok {
			return 0, false
		}
		hi = c
		n += 1 + m
	}
	writeRange(set, lo, hi)
	return n, true
}

// writeRange adds a range without the slash.
func writeRange(set *strings.Builder, lo, hi byte) {
	for _, r := range [][2]int{{int(lo), min(int(hi), '/'-1)}, {max(int(lo), '/'+1), int(hi)}} {
		if r[0] <= r[1] {
			fmt.Fprintf(set, `\x{%02x}-\x{%02x}`, r[0], r[1])
		}
	}
}

func classByte(s string) (c byte, n int, ok bool) {
	if s[0] != '\\' {
		return s[0], 1, true
	}
	if len(s) < 2 {
		return 0, 0, false
	}
	return s[1], 2, true
}
