package file

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/file/ignore"
)

// shared is a directory handle used by the walk and by the goroutines that read its files. The last user closes it.
type shared struct {
	dir
	refs atomic.Int32
}

func shareDir(d dir) *shared {
	s := &shared{dir: d}
	s.refs.Store(1)
	return s
}

func (s *shared) hold() *shared {
	s.refs.Add(1)
	return s
}

func (s *shared) release() {
	if s.refs.Add(-1) == 0 {
		s.close()
	}
}

// walker visits a tree in the order of names. It continues when something cannot be read.
type walker struct {
	s       *scope
	start   time.Time
	tidy    bool // skip what grep does not search: hidden names, .gitignore, build directories
	visit   func(d *shared, rel string, e fs.DirEntry) error
	leave   func() error // called before the walk enters or leaves a directory; may be nil
	seen    int
	locked  int    // directories that could not be opened
	stopped string // why the walk ended early; "" if it did not
}

var errStop = errors.New("stop")

// walkPlace walks the directory at p. It reports paths relative to p.
func (w *walker) walkPlace(p place) error {
	w.start = w.s.Now()
	d, err := w.s.dirAt(p.root, p.abs)
	if err != nil {
		return err
	}
	top := shareDir(d)
	defer top.release()
	var rules *ignore.List
	base := ""
	if w.tidy {
		if rules, base, err = w.s.rulesAbove(p); err != nil {
			return err
		}
	}
	err = w.walkDir(top, "", base, rules, 0)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// walkDir walks one directory. rel is its path relative to the start, base its path relative to where the ignore rules
// begin.
func (w *walker) walkDir(d *shared, rel, base string, rules *ignore.List, depth int) error {
	list, err := w.s.listEntries(d.dir)
	if err != nil {
		if w.s.ctx.Err() != nil {
			return w.s.ctx.Err()
		}
		w.locked++
		return nil
	}
	if w.s.isExpired(w.start) {
		w.stopped = timeOver
		return errStop
	}
	if w.tidy {
		rules, base = w.s.rulesIn(d.dir, base, rules, list)
	}
	for _, e := range list {
		if w.tidy && (isSkipped(e) || rules.Ignored(path.Join(base, e.Name()), e.IsDir())) {
			continue
		}
		if w.seen++; w.seen > w.s.MaxEntries {
			w.stopped = "there are too many files"
			return errStop
		}
		if err := w.visit(d, path.Join(rel, e.Name()), e); err != nil {
			return err
		}
		if e.IsDir() {
			if err := w.walkDown(d, rel, base, rules, depth, e.Name()); err != nil {
				return err
			}
		}
	}
	return w.checkLeft()
}

func (w *walker) checkLeft() error {
	if w.leave == nil {
		return nil
	}
	return w.leave()
}

func (w *walker) walkDown(d *shared, rel, base string, rules *ignore.List, depth int, name string) error {
	if depth >= maxDepth {
		w.locked++
		return nil
	}
	if err := w.checkLeft(); err != nil {
		return err
	}
	sub, err := d.openSub(name)
	if err != nil {
		w.locked++
		return nil
	}
	next := shareDir(sub)
	defer next.release()
	return w.walkDir(next, path.Join(rel, name), path.Join(base, name), rules, depth+1)
}

// timeOver is why a search ended early.
const timeOver = "the time is over"

// startStopwatch returns what reports whether the time limit for a search that begins now has passed. It is safe for
// concurrent use.
func (s *scope) startStopwatch() (late func() bool) {
	start := s.Now()
	return func() bool { return s.ctx.Err() != nil || s.isExpired(start) }
}

// isExpired reports whether the time limit for a walk has passed.
func (s *scope) isExpired(start time.Time) bool { return s.Now().Sub(start) > s.MaxTime }

// isSkipped reports whether grep skips a name: hidden files, and directories with built or downloaded files.
func isSkipped(e fs.DirEntry) bool {
	name := e.Name()
	return strings.HasPrefix(name, ".") || (e.IsDir() && (name == "target" || name == "node_modules"))
}

const ignoreFile = ".gitignore"

// rulesAbove collects the .gitignore files from the top of the repository, or of the root, down to the directory above
// p. It also returns the path of p from there. If p itself is ignored, it was requested explicitly, and the rules above
// it do not apply.
func (s *scope) rulesAbove(p place) (*ignore.List, string, error) {
	var rules *ignore.List
	base := ""
	d, err := s.dirAt(p.root, p.root)
	if err != nil {
		return nil, "", err
	}
	defer func() { d.close() }()
	for _, name := range p.rel() {
		if _, repo, _ := d.statName(".git"); repo { // what cannot be inspected counts as absent
			rules, base = nil, ""
		}
		rules = rules.Below(base, readIgnore(d))
		sub, err := d.openSub(name)
		if err != nil {
			return nil, "", err
		}
		d.close()
		d, base = sub, path.Join(base, name)
		if rules.Ignored(base, true) {
			return nil, "", nil
		}
	}
	return rules, base, nil
}

// rulesIn adds the .gitignore of a directory. A nested repository starts with an empty list.
func (s *scope) rulesIn(d dir, base string, rules *ignore.List, list []fs.DirEntry) (*ignore.List, string) {
	for _, e := range list {
		switch e.Name() {
		case ".git":
			rules, base = nil, ""
		case ignoreFile: // sorts after .git
			rules = rules.Below(base, readIgnore(d))
		}
	}
	return rules, base
}

// readIgnore returns the .gitignore in d; nil if it does not exist, is a link (as in git) or cannot be read.
func readIgnore(d dir) []byte {
	f, err := d.openName(ignoreFile, unix.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // opened for reading
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, ignore.MaxBytes))
	if err != nil {
		return nil
	}
	return content
}
