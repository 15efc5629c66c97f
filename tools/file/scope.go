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

// enterScope returns the scope of a call. With prepare, the workspace is created if it does not exist.
func (t *toolset) enterScope(ctx context.Context, origin tools.Origin, prepare bool) (*scope, error) {
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
		toolset: t, ctx: ctx, origin: origin, cwd: rootPath{alias: filepath.Clean(dir), path: canonicalPath(dir)},
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

func (p place) doesExist() bool { return p.info != nil }
func (p place) isRoot() bool    { return p.abs == p.root }
func (p place) base() string    { return filepath.Base(p.abs) }
func (p place) isDir() bool     { return p.info != nil && p.info.mode.IsDir() }
func (p place) isLink() bool    { return p.info != nil && p.info.mode&fs.ModeSymlink != 0 }
func (p place) isRegular() bool { return p.info != nil && p.info.mode.IsRegular() }
func (p place) rel() []string   { return pathComponents(p.root, p.abs) }
func (p place) parent() string  { return filepath.Dir(p.abs) }

// pathComponents returns the components of path below root.
func pathComponents(root, path string) []string {
	rel := strings.Trim(strings.TrimPrefix(path, root), "/")
	if rel == "" {
		return nil
	}
	return strings.Split(rel, "/")
}

// resolvePlace returns the canonical place of a path from a model. With follow, a link as the last component is
// followed. Nothing outside the allowed places is ever inspected, so that a model cannot find out what is there.
func (s *scope) resolvePlace(given string, follow bool) (place, error) {
	abs, err := s.absolutePath(given)
	if err != nil {
		return place{}, err
	}
	p := place{given: given}
	for range maxLinks {
		root, ok := s.rootOf(abs)
		if !ok {
			return p, s.outsideError(given)
		}
		p.root, p.abs = root.path, filepath.Join(root.path, strings.TrimPrefix(abs, root.alias))
		if s.isHidden(p.abs) {
			return p, s.outsideError(given)
		}
		next, err := s.stepDown(&p, follow)
		if err != nil {
			return p, err
		}
		if next == "" {
			return p, nil
		}
		abs = next
	}
	return p, failedError("", "%s cannot be used: too many links", quoteName(given))
}

// stepDown walks down to p.abs, one handle at a time. It stops at the first link and
// returns the path to which it leads.
func (s *scope) stepDown(p *place, follow bool) (next string, err error) {
	p.info = nil
	d, err := s.dirAt(p.root, p.root)
	if errors.Is(err, fs.ErrNotExist) { // the workspace was never used
		return "", nil
	}
	if err != nil {
		return "", systemError(err, "open", p.given)
	}
	defer func() { d.close() }()
	p.info = &info{mode: fs.ModeDir}
	parts := p.rel()
	for i, name := range parts {
		st, ok, err := d.statName(name)
		if err != nil {
			return "", systemError(err, "look at", p.given)
		}
		if !ok {
			p.info = nil
			return "", nil
		}
		p.info = &info{mode: modeOf(st), size: st.Size}
		last := i == len(parts)-1
		switch {
		case p.isLink() && (!last || follow):
			return d.linkTarget(name, parts[i+1:])
		case last:
			return "", nil
		case !p.isDir():
			return "", failedError(
				"", "%s: %s is not a directory", quoteName(p.given), quoteName(s.displayPath(d.joinName(name))),
			)
		}
		sub, err := d.openSub(name)
		if err != nil {
			return "", systemError(err, "open", p.given)
		}
		d.close()
		d = sub
	}
	return "", nil
}

// linkTarget returns the absolute path to which a link in d leads, with the rest appended.
func (d dir) linkTarget(name string, rest []string) (string, error) {
	to, err := d.readLink(name)
	if err != nil {
		return "", systemError(err, "follow", name)
	}
	if !filepath.IsAbs(to) {
		to = d.joinName(to)
	}
	return filepath.Join(append([]string{to}, rest...)...), nil
}

// absolutePath makes a path absolute without using the disk.
func (s *scope) absolutePath(given string) (string, error) {
	switch {
	case given == "":
		return "", argumentError("Give a path, for example \"notes.txt\" or \".\".", "the path is empty")
	case strings.ContainsRune(given, 0) || !utf8.ValidString(given):
		return "", argumentError("", "%s is not a path: it holds characters that no name may have", quoteName(given))
	case given == "~" || strings.HasPrefix(given, "~/"):
		return "", argumentError("Give a path relative to the working directory, or an absolute one.",
			"%s: ~ is not expanded here", quoteName(given))
	}
	abs := given
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(s.cwd.path, abs)
	}
	abs = filepath.Clean(abs)
	if len(abs) > maxPath {
		return "", argumentError("", "the path has %d bytes; at most %d are possible", len(abs), maxPath)
	}
	for part := range strings.SplitSeq(abs, "/") {
		if len(part) > maxName {
			return "", argumentError("", "a name in the path has %d bytes; at most %d are possible", len(part), maxName)
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

// isHidden reports whether no tool may reach a canonical path.
func (s *scope) isHidden(abs string) bool {
	if len(s.denied) == 0 {
		return false
	}
	folded := foldPath(abs)
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
	folded := foldPath(dir)
	for _, d := range s.denied {
		if filepath.Dir(d.folded) == folded {
			return true
		}
	}
	return false
}

// deniedPath is a path that no tool may reach.
type deniedPath struct{ path, folded string }

func foldPath(p string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(p))) }

// holdsHidden reports whether something at or below a directory is hidden.
func (s *scope) holdsHidden(abs string) bool {
	for _, d := range s.denied {
		if pathrule.Inside(foldPath(abs), d.folded) && !pathrule.Inside(d.path, s.cwd.path) {
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

// outsideError returns the error for a path that is not in an allowed place. It reveals neither the location of the
// workspace nor the denied paths.
func (s *scope) outsideError(given string) error {
	return tools.Refused(
		reason.Reason{Code: reason.OffLimits, Args: []string{quoteName(given)}, Detail: s.placeNames()},
		"Use a path relative to the working directory, such as \"notes.txt\".",
	)
}

func (s *scope) placeNames() string {
	names := []string{"the working directory of this conversation"}
	for _, r := range s.toolset.roots {
		names = append(names, quoteName(r.alias))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// displayPath returns a canonical path as models and people read it: relative to the working directory if it is inside.
func (s *scope) displayPath(abs string) string {
	if abs == s.cwd.path {
		return "."
	}
	if pathrule.Inside(s.cwd.path, abs) {
		return strings.TrimPrefix(strings.TrimPrefix(abs, s.cwd.path), "/")
	}
	return abs
}

// locationNote returns where a place is, for the person who is asked.
func (s *scope) locationNote(p place) reason.Reason {
	if pathrule.Inside(s.cwd.path, p.abs) {
		return reason.Notes(reason.New(reason.InWorkspace))
	}
	for _, r := range s.toolset.roots {
		if r.path == p.root {
			return reason.Notes(reason.New(reason.InAllowedPath, showName(r.alias)))
		}
	}
	return reason.Notes()
}

// checkDenied returns an error if the content of a path is denied.
func (s *scope) checkDenied(abs, given string) error {
	if _, denied := s.Rules.Denied(abs); denied {
		return refusedError("", reason.MayNotRead, quoteName(given))
	}
	return nil
}
