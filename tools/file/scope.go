package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Limits of a path on Linux.
const (
	maxPath  = 4096
	maxName  = 255
	maxLinks = 40
)

// scope is what one call can reach. It belongs to one call and holds its handles until close.
type scope struct {
	*toolset
	ctx    context.Context //nolint:containedctx // a scope lives as long as the call whose context it is
	cwd    rootPath
	origin tools.Origin
	all    []rootPath // cwd and the allowed paths
	roots  map[string]*os.Root
	wrote  string            // state of the file that the call has written; "" = none
	links  func() *linkIndex // files below the denied paths with several names; determined on first use
}

// enter returns the scope of a call. With prepare, the workspace is created if it does not exist.
func (t *toolset) enter(ctx context.Context, origin tools.Origin, prepare bool) (*scope, error) {
	dir, err := t.Workspace(origin)
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("working directory %q: want an absolute path", dir)
	}
	if prepare {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the working directory: %w", err)
		}
	}
	s := &scope{
		toolset: t, ctx: ctx, origin: origin, cwd: rootPath{alias: filepath.Clean(dir), path: canonical(dir)},
		roots: map[string]*os.Root{},
	}
	s.all = append([]rootPath{s.cwd}, t.roots...)
	s.links = sync.OnceValue(s.indexLinks)
	return s, nil
}

func (s *scope) close() {
	for _, r := range s.roots {
		_ = r.Close() // nothing was written through the handle of a directory
	}
}

// place is a resolved path: below a root, without links except perhaps the last component.
type place struct {
	given string // as the model wrote it
	abs   string // canonical
	root  string // canonical path of its root
	info  *info  // nil = it does not exist
}

// info is the state of a place when it was resolved.
type info struct {
	mode fs.FileMode
	size int64
}

func (p place) exists() bool   { return p.info != nil }
func (p place) isRoot() bool   { return p.abs == p.root }
func (p place) base() string   { return filepath.Base(p.abs) }
func (p place) isDir() bool    { return p.info != nil && p.info.mode.IsDir() }
func (p place) isLink() bool   { return p.info != nil && p.info.mode&fs.ModeSymlink != 0 }
func (p place) regular() bool  { return p.info != nil && p.info.mode.IsRegular() }
func (p place) rel() []string  { return components(p.root, p.abs) }
func (p place) parent() string { return filepath.Dir(p.abs) }

// components returns the components of path below root.
func components(root, path string) []string {
	rel := strings.Trim(strings.TrimPrefix(path, root), "/")
	if rel == "" {
		return nil
	}
	return strings.Split(rel, "/")
}

// resolve returns the canonical place of a path from a model. With follow, a link as the last component is followed.
// Nothing outside the allowed places is ever inspected, so that a model cannot find out what is there.
func (s *scope) resolve(given string, follow bool) (place, error) {
	abs, err := s.absolute(given)
	if err != nil {
		return place{}, err
	}
	p := place{given: given}
	for range maxLinks {
		root, ok := s.rootOf(abs)
		if !ok {
			return p, s.outside(given)
		}
		p.root, p.abs = root.path, filepath.Join(root.path, strings.TrimPrefix(abs, root.alias))
		if s.hidden(p.abs) {
			return p, s.outside(given)
		}
		next, err := s.step(&p, follow)
		if err != nil {
			return p, err
		}
		if next == "" {
			return p, nil
		}
		abs = next
	}
	return p, failed("", "%s cannot be used: too many links", quote(given))
}

// step walks down to p.abs, one handle at a time. It stops at the first link and returns the path to which it leads.
func (s *scope) step(p *place, follow bool) (next string, err error) {
	p.info = nil
	d, err := s.dirAt(p.root, p.root)
	if errors.Is(err, fs.ErrNotExist) { // the workspace was never used
		return "", nil
	}
	if err != nil {
		return "", because(err, "open", p.given)
	}
	defer func() { d.close() }()
	p.info = &info{mode: fs.ModeDir}
	parts := p.rel()
	for i, name := range parts {
		st, ok, err := d.lstat(name)
		if err != nil {
			return "", because(err, "look at", p.given)
		}
		if !ok {
			p.info = nil
			return "", nil
		}
		p.info = &info{mode: modeOf(st), size: st.Size}
		last := i == len(parts)-1
		switch {
		case p.isLink() && (!last || follow):
			return d.target(name, parts[i+1:])
		case last:
			return "", nil
		case !p.isDir():
			return "", failed("", "%s: %s is not a directory", quote(p.given), quote(s.display(d.join(name))))
		}
		sub, err := d.sub(name)
		if err != nil {
			return "", because(err, "open", p.given)
		}
		d.close()
		d = sub
	}
	return "", nil
}

// target returns the absolute path to which a link in d leads, with the rest appended.
func (d dir) target(name string, rest []string) (string, error) {
	to, err := d.readlink(name)
	if err != nil {
		return "", because(err, "follow", name)
	}
	if !filepath.IsAbs(to) {
		to = d.join(to)
	}
	return filepath.Join(append([]string{to}, rest...)...), nil
}

// absolute makes a path absolute without using the disk.
func (s *scope) absolute(given string) (string, error) {
	switch {
	case given == "":
		return "", wrong("Give a path, for example \"notes.txt\" or \".\".", "the path is empty")
	case strings.ContainsRune(given, 0) || !utf8.ValidString(given):
		return "", wrong("", "%s is not a path: it holds characters that no name may have", quote(given))
	case given == "~" || strings.HasPrefix(given, "~/"):
		return "", wrong("Give a path relative to the working directory, or an absolute one.",
			"%s: ~ is not expanded here", quote(given))
	}
	abs := given
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(s.cwd.path, abs)
	}
	abs = filepath.Clean(abs)
	if len(abs) > maxPath {
		return "", wrong("", "the path has %d bytes; at most %d are possible", len(abs), maxPath)
	}
	for part := range strings.SplitSeq(abs, "/") {
		if len(part) > maxName {
			return "", wrong("", "a name in the path has %d bytes; at most %d are possible", len(part), maxName)
		}
	}
	return abs, nil
}

// rootOf returns the innermost root that contains an absolute path.
func (s *scope) rootOf(abs string) (rootPath, bool) {
	var best rootPath
	found := false
	for _, r := range s.all {
		for _, alias := range []string{r.path, r.alias} {
			if pathrule.Inside(alias, abs) && (!found || len(r.path) > len(best.path)) {
				best, found = rootPath{alias: strings.TrimSuffix(alias, "/"), path: r.path}, true
			}
		}
	}
	return best, found
}

// hidden reports whether no tool may reach a canonical path.
func (s *scope) hidden(abs string) bool {
	if len(s.denied) == 0 {
		return false
	}
	folded := fold(abs)
	for _, d := range s.denied {
		// Case and Unicode form are ignored, because the file system may ignore them too.
		if !pathrule.Inside(d.folded, folded) {
			continue
		}
		if pathrule.Inside(d.path, s.cwd.path) && pathrule.Inside(s.cwd.path, abs) {
			continue
		}
		return true
	}
	return false
}

// hidesIn reports whether something directly inside a directory that is not hidden may be hidden.
func (s *scope) hidesIn(dir string) bool {
	if len(s.denied) == 0 {
		return false
	}
	folded := fold(dir)
	for _, d := range s.denied {
		if filepath.Dir(d.folded) == folded {
			return true
		}
	}
	return false
}

// deniedPath is a path that no tool may reach.
type deniedPath struct{ path, folded string }

func fold(p string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(p))) }

// holdsHidden reports whether something at or below a directory is hidden.
func (s *scope) holdsHidden(abs string) bool {
	for _, d := range s.denied {
		if pathrule.Inside(fold(abs), d.folded) && !pathrule.Inside(d.path, s.cwd.path) {
			return true
		}
	}
	return false
}

// holdsRoot reports whether a path is a root or contains one.
func (s *scope) holdsRoot(abs string) bool {
	for _, r := range s.all {
		if pathrule.Inside(abs, r.path) || pathrule.Inside(abs, r.alias) {
			return true
		}
	}
	return false
}

// outside returns the error for a path that is not in an allowed place. It reveals neither the location of the
// workspace nor the denied paths.
func (s *scope) outside(given string) error {
	return refused("Use a path relative to the working directory, such as \"notes.txt\".",
		"%s is off limits: files are reached only in %s", quote(given), s.places())
}

func (s *scope) places() string {
	names := []string{"the working directory of this conversation"}
	for _, r := range s.toolset.roots {
		names = append(names, quote(r.alias))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// display returns a canonical path as models and people read it: relative to the working directory if it is inside.
func (s *scope) display(abs string) string {
	if abs == s.cwd.path {
		return "."
	}
	if pathrule.Inside(s.cwd.path, abs) {
		return strings.TrimPrefix(strings.TrimPrefix(abs, s.cwd.path), "/")
	}
	return abs
}

// note returns where a place is, for the person who is asked.
func (s *scope) note(p place) reason.Reason {
	if pathrule.Inside(s.cwd.path, p.abs) {
		return reason.Notes(reason.New(reason.InWorkspace))
	}
	for _, r := range s.toolset.roots {
		if r.path == p.root {
			return reason.Notes(reason.New(reason.InAllowedPath, show(r.alias)))
		}
	}
	return reason.Notes()
}

// unreadable returns an error if the content of a path is denied.
func (s *scope) unreadable(abs, given string) error {
	if _, denied := s.Rules.Denied(abs); denied {
		return refused("", "%s may not be read here", quote(given))
	}
	return nil
}
