package file

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/charset"
)

// Sources gives other tools the files that the file tools may read, under the same checks. It is safe for concurrent
// use.
type Sources struct{ t *toolset }

// NewSources checks the options, of which MaxEntries and MaxTime limit each Walk. The error lists every configured path
// that is not usable.
func NewSources(o Options) (*Sources, error) {
	t, err := newToolset(o)
	if err != nil {
		return nil, err
	}
	return &Sources{t}, nil
}

// View is what one reader can reach. It is not safe for concurrent use. The caller must close it.
type View struct{ s *scope }

// For returns what the file tools of a conversation can reach. The working directory is created if it does not exist.
func (s *Sources) For(ctx context.Context, origin tools.Origin) (*View, error) {
	scope, err := s.t.enterScope(ctx, origin, true)
	if err != nil {
		return nil, err
	}
	return &View{scope}, nil
}

// Below returns a view of a single directory, given by its canonical path, as a conversation sees it that works there.
func (s *Sources) Below(ctx context.Context, root string) *View {
	return &View{s.t.scopeBelow(ctx, root)}
}

func (t *toolset) scopeBelow(ctx context.Context, root string) *scope {
	s := &scope{toolset: t, ctx: ctx, cwd: rootPath{alias: root, path: root}, roots: map[string]*os.Root{}}
	s.all = []rootPath{s.cwd}
	s.links = sync.OnceValue(s.indexLinks)
	return s
}

// Close releases the handles.
func (v *View) Close() { v.s.close() }

// Roots returns the canonical paths of the directories that the view reaches, the working directory first. If among is
// not nil, it returns those of them that the view reaches instead. What lies in another one is left out.
func (v *View) Roots(among []string) []string {
	var list []string
	if among == nil {
		for _, r := range v.s.all {
			list = append(list, r.path)
		}
	}
	for _, p := range among {
		path := canonicalPath(p)
		if _, ok := v.s.rootOf(path); ok && !v.s.isHidden(path) {
			list = append(list, path)
		}
	}
	var out []string
	for _, path := range list {
		covered := slices.ContainsFunc(list, func(other string) bool {
			return other != path && pathrule.Inside(other, path) && !v.s.scopeBelow(v.s.ctx, other).isHidden(path)
		})
		if !covered && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// Display returns a canonical path as models and people read it: relative to the working directory if it is inside.
func (v *View) Display(abs string) string { return showName(v.s.displayPath(abs)) }

// Stamp changes when a file changes.
type Stamp struct {
	Size     int64
	Modified int64 // in nanoseconds since 1970
	Changed  int64 // of the inode, likewise
}

func stampOf(st unix.Stat_t) Stamp {
	return Stamp{Size: st.Size, Modified: unix.TimespecToNsec(st.Mtim), Changed: unix.TimespecToNsec(st.Ctim)}
}

// Tree is the result of a Walk.
type Tree struct {
	Files   map[string]Stamp // by path relative to the root, with slashes
	Dirs    []string         // canonical paths of the directories that were visited
	Denied  int              // files that must not be read
	Locked  int              // directories that could not be opened
	Stopped string           // why the walk ended early; "" if it did not
}

// Walk lists the regular files below a root that may be read and for whose name want returns true. It leaves out what
// grep leaves out: hidden names, what .gitignore excludes, target and node_modules. Links are not followed.
func (v *View) Walk(root string, want func(name string) bool) (Tree, error) {
	tree := Tree{Files: map[string]Stamp{}, Dirs: []string{root}}
	w := &walker{s: v.s, tidy: true}
	w.visit = func(d *shared, rel string, e fs.DirEntry) error {
		switch {
		case e.IsDir():
			tree.Dirs = append(tree.Dirs, d.joinName(e.Name()))
			return nil
		case !e.Type().IsRegular() || !want(rel):
			return nil
		}
		if _, denied := v.s.Rules.Denied(d.joinName(e.Name())); denied && v.s.rules {
			tree.Denied++
			return nil
		}
		st, ok, err := d.statName(e.Name())
		switch {
		case err != nil || !ok || fileKind(st) != unix.S_IFREG:
		case st.Nlink > 1 && v.s.otherName(st):
			tree.Denied++
		default:
			tree.Files[rel] = stampOf(st)
		}
		return nil
	}
	p := place{given: root, abs: root, root: root, info: &info{mode: fs.ModeDir}}
	if r, ok := v.s.rootOf(root); ok {
		p.root = r.path
	}
	err := w.walkPlace(p)
	tree.Locked, tree.Stopped = w.locked, w.stopped
	if err != nil {
		return tree, systemError(err, "search", v.s.displayPath(root))
	}
	return tree, nil
}

// Read returns at most limit bytes of a regular file that may be read, with its stamp. Text that is not UTF-8 is decoded,
// and may have more bytes then.
func (v *View) Read(path string, limit int64) ([]byte, Stamp, error) {
	p, err := v.s.resolvePlace(path, true)
	if err != nil {
		return nil, Stamp{}, err
	}
	f, st, err := v.s.openContent(p)
	if err != nil {
		return nil, Stamp{}, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	content := make([]byte, 0, max(0, min(st.Size, limit)+1))
	for int64(len(content)) < limit {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := f.Read(content[len(content):min(int64(cap(content)), limit)])
		content = content[:len(content)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, Stamp{}, systemError(err, "read", path)
		}
	}
	if encoding, ok := charset.Detect(content, int64(len(content)) < limit); ok && !encoding.IsUTF8() {
		content = []byte(encoding.Decode(content))
	}
	return content, stampOf(st), nil
}

// Canonical returns the path of a file that the view reaches, without links; false = it does not reach it.
func (v *View) Canonical(path string) (string, bool) {
	p, err := v.s.resolvePlace(filepath.Clean(path), true)
	return p.abs, err == nil && p.isRegular()
}
