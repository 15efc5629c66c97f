// Package pathrule decides which files tools may read, by the globs of tools.file.deny_read and allow_read (seed 003).
// It is pure and works only on canonical absolute paths: the caller that opens a file resolves links first.
package pathrule

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/zephbot/zephbot/policy/gram"
)

// Rules are compiled globs. They are immutable and safe for concurrent use.
type Rules struct {
	deny, allow []glob
}

// maxPattern is the maximum length of a glob in bytes.
const maxPattern = 1024

// glob is a compiled pattern.
type glob struct {
	pattern string
	re      *regexp.Regexp
	// literal is a lower-case text that every ASCII match contains.
	literal string
	grams   gram.Needle // of literal
}

// lower returns a path in lower case if all of it is ASCII. Other letters have more than two cases, and are left to the
// expressions.
func lower(p string) (string, bool) {
	for i := range len(p) {
		if p[i] >= utf8.RuneSelf {
			return "", false
		}
	}
	return strings.ToLower(p), true
}

// longest returns the longest literal text in a glob.
func longest(pattern string) string {
	if strings.ContainsAny(pattern, "{[") {
		pattern = pattern[:strings.IndexAny(pattern, "{[")]
	}
	best := ""
	for part := range strings.FieldsFuncSeq(pattern,
		func(r rune) bool { return r == '*' || r == '?' || r >= utf8.RuneSelf }) {
		if part = strings.Trim(part, "/"); len(part) > len(best) {
			best = part
		}
	}
	return strings.ToLower(best)
}

// New compiles the globs. A path is denied if a deny glob matches and no allow glob does; without deny globs nothing is
// denied.
//
// Deny globs match widely: `*` crosses "/", everything below a denied path is denied too, and letters match in any case
// and in composed or decomposed form, because the file system may not distinguish these. Allow globs match strictly:
// `*` and `?` stop at "/", `**` does not, case matters, and only the path itself is allowed. Both support `[abc]`,
// `[!abc]` and `{a,b}`. The error reports all invalid globs, by key and index.
func New(deny, allow []string) (*Rules, error) {
	r := &Rules{}
	var errs []error
	compile := func(key string, patterns []string, wide bool) []glob {
		var out []glob
		for i, p := range patterns {
			g, err := compileGlob(p, wide)
			if err != nil {
				errs = append(errs, fmt.Errorf("tools.file.%s[%d]: %q: %w", key, i, p, err))
				continue
			}
			out = append(out, g)
		}
		return out
	}
	r.deny = compile("deny_read", deny, true)
	r.allow = compile("allow_read", allow, false)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Denied reports whether the file must not be read, and the glob that denies it. A path that is not absolute, not clean
// or not valid text is always denied, because no glob is certain to match it.
func (r *Rules) Denied(canonicalPath string) (rule string, denied bool) {
	if len(r.deny) == 0 {
		return "", false
	}
	p := canonicalPath
	if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return "not a canonical path", true
	}
	// Bytes that are not UTF-8 become U+FFFD, which only a wildcard matches.
	p = norm.NFC.String(strings.ToValidUTF8(p, string(utf8.RuneError)))
	low, ascii := lower(p)
	for _, d := range r.deny {
		if ascii && !strings.Contains(low, d.literal) || !d.re.MatchString(p) {
			continue
		}
		for _, a := range r.allow {
			if a.re.MatchString(p) {
				return "", false
			}
		}
		return d.pattern, true
	}
	return "", false
}

// Denies returns the deny globs.
func (r *Rules) Denies() []string {
	list := make([]string, 0, len(r.deny))
	for _, g := range r.deny {
		list = append(list, g.pattern)
	}
	return list
}

// ExceptionBelow reports whether an allow glob may match something below a canonical directory, so that the directory
// cannot be denied as a whole.
func (r *Rules) ExceptionBelow(dir string) bool {
	below := norm.NFC.String(strings.TrimSuffix(dir, "/")) + "/"
	return slices.ContainsFunc(r.allow, func(g glob) bool {
		i := strings.IndexAny(g.pattern, "*?[{")
		if i < 0 {
			return strings.HasPrefix(g.pattern, below)
		}
		return strings.HasPrefix(g.pattern[:i], below) || strings.HasPrefix(below, g.pattern[:i])
	})
}

// Narrow returns equivalent rules for the paths whose lower-case forms are in the hay: it leaves out the deny globs
// that cannot match any of them. All of the paths must be ASCII.
func (r *Rules) Narrow(hay *gram.Set) *Rules {
	n := &Rules{allow: r.allow}
	for _, d := range r.deny {
		if hay.May(d.grams) {
			n.deny = append(n.deny, d)
		}
	}
	return n
}

// Inside reports whether path is root or below it. It is lexical: both are cleaned, and links are not resolved. A
// relative path is never inside.
func Inside(root, p string) bool {
	if !path.IsAbs(root) || !path.IsAbs(p) {
		return false
	}
	root, p = path.Clean(root), path.Clean(p)
	return p == root || root == "/" || strings.HasPrefix(p, root+"/")
}

// compileGlob translates a glob to a regular expression, which Go matches in linear time.
func compileGlob(pattern string, wide bool) (glob, error) {
	switch {
	case pattern == "":
		return glob{}, errors.New("the pattern is empty")
	case len(pattern) > maxPattern:
		return glob{}, fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(pattern), maxPattern)
	case !utf8.ValidString(pattern) || strings.ContainsRune(pattern, 0):
		return glob{}, errors.New("the pattern is not valid text")
	case pattern[0] != '/' && pattern[0] != '*':
		return glob{}, errors.New("the pattern must begin with / or *, because it is matched with absolute paths")
	}
	text := norm.NFC.String(pattern)
	if len(text) > 1 {
		text = strings.TrimSuffix(text, "/")
	}
	if strings.Contains(text+"/", "/../") || strings.Contains(text+"/", "/./") || strings.Contains(text, "//") {
		return glob{}, errors.New("the pattern has an empty part, . or .., which no canonical path has")
	}
	t := translator{rest: text, wide: wide}
	expr, err := t.translate()
	if err != nil {
		return glob{}, err
	}
	re, err := regexp.Compile(expr)
	literal := longest(text)
	return glob{pattern: pattern, re: re, literal: literal, grams: gram.Of(literal)}, err
}

// translator translates the rest of a glob to an expression, element by element.
type translator struct {
	rest string
	wide bool
	open bool // inside {…}
	out  strings.Builder
}

func (t *translator) translate() (string, error) {
	t.out.WriteString(`\A(?s`)
	if t.wide {
		t.out.WriteString("i")
	}
	t.out.WriteString(":")
	if t.rest == "/" && t.wide {
		t.rest = "/*"
	}
	for t.rest != "" {
		if err := t.next(); err != nil {
			return "", err
		}
	}
	if t.open {
		return "", errors.New("an alternative is not closed by }")
	}
	if t.wide {
		t.out.WriteString("(?:/.*)?")
	}
	t.out.WriteString(`)\z`)
	return t.out.String(), nil
}

// next translates one element.
func (t *translator) next() error {
	switch {
	case strings.HasPrefix(t.rest, "/**/"):
		t.take(3, "/(?:.*/)?")
		t.rest = t.rest[1:]
	case strings.HasPrefix(t.rest, "**"):
		t.take(len(t.rest)-len(strings.TrimLeft(t.rest, "*")), ".*")
	case t.rest[0] == '*':
		t.take(1, t.one()+"*")
	case t.rest[0] == '?':
		t.take(1, t.one())
	case t.rest[0] == '[':
		return t.class()
	default:
		return t.alternative()
	}
	return nil
}

// one returns the expression for one character.
func (t *translator) one() string {
	if t.wide {
		return "."
	}
	return "[^/]"
}

// alternative translates {a,b} and literal characters.
func (t *translator) alternative() error {
	switch {
	case t.rest[0] == '{' && t.open:
		return errors.New("alternatives {a,b} may not be nested")
	case t.rest[0] == '{':
		t.open = true
		t.take(1, "(?:")
	case t.rest[0] == ',' && t.open:
		t.take(1, "|")
	case t.rest[0] == '}' && t.open:
		t.open = false
		t.take(1, ")")
	default:
		_, n := utf8.DecodeRuneInString(t.rest)
		t.take(n, regexp.QuoteMeta(t.rest[:n]))
	}
	return nil
}

// take replaces n bytes of the glob by an expression.
func (t *translator) take(n int, expr string) {
	t.out.WriteString(expr)
	t.rest = t.rest[n:]
}

// class translates [abc], [a-z] and [!abc]; a class never matches "/".
func (t *translator) class() error {
	body := t.rest[1:]
	negate := strings.HasPrefix(body, "!")
	if negate {
		body = body[1:]
	}
	if strings.HasPrefix(body, "^") {
		return errors.New("a class is negated by [!…], not by [^…]")
	}
	// A ] in first place is a literal.
	end := strings.IndexByte(body[min(1, len(body)):], ']')
	if end < 0 {
		return errors.New("a class is not closed by ]")
	}
	expr, err := classBody([]rune(body[:end+1]))
	if err != nil {
		return err
	}
	t.rest = body[end+2:]
	if negate {
		t.out.WriteString("[^/" + expr + "]")
		return nil
	}
	t.out.WriteString("[" + expr + "]")
	return nil
}

// classBody translates the content of the brackets. It refuses a set that contains "/", so that a class cannot match
// beyond its directory.
func classBody(set []rune) (string, error) {
	var b strings.Builder
	for i := 0; i < len(set); i++ {
		lo, hi := set[i], set[i]
		if i+2 < len(set) && set[i+1] == '-' {
			hi = set[i+2]
			i += 2
		}
		if hi < lo {
			return "", fmt.Errorf("the range %c-%c is the wrong way round", lo, hi)
		}
		if lo <= '/' && '/' <= hi {
			return "", errors.New("a class may not contain /")
		}
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, lo, hi)
	}
	return b.String(), nil
}
