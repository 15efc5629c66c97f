// Package code finds code: it indexes what the files of a conversation declare, and has the tool search_code, which
// searches that index, passages by meaning, a language server and, at last, the text of the files.
//
// The index of a directory is derived from its files and can be thrown away at any time. It belongs to the directory,
// not to a person: a search covers only directories that the file tools of its conversation reach, and every hit is
// read again through the file policy of that conversation before it is shown.
package code

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// Stored is what a Store keeps about a file.
type Stored struct {
	Path    string // relative to the root
	Stamp   file.Stamp
	Hash    string // of the content
	Outline []byte // opaque
}

// A Store keeps what was read, so that a restart does not read everything again. It may lose everything. Safe for
// concurrent use. It retains none of the slices that it is given.
type Store interface {
	// Load calls see for every file of a root. An error of see ends it and is returned.
	Load(ctx context.Context, root string, see func(Stored) error) error
	// Save stores or replaces some files of a root and removes others, all or none. A nil Outline means that
	// the one that is stored remains.
	Save(ctx context.Context, root string, put []Stored, gone []string) error
	// Roots lists the roots of which something is stored.
	Roots(ctx context.Context) ([]string, error)
	// Forget removes a root.
	Forget(ctx context.Context, root string) error
}

// A Watcher reports changes below directories. Safe for concurrent use.
type Watcher interface {
	// Watch watches directories of a root besides those that are watched already. An error means that changes of the
	// root are not reported completely from now on; it is then no longer watched.
	Watch(root string, dirs []string) error
	// Unwatch ends the watch of a root.
	Unwatch(root string)
	// Sync returns when all changes up to now were reported; false = they were not.
	Sync(ctx context.Context) bool
	// Run reports changes until ctx ends. changed must not block.
	Run(ctx context.Context, changed func(root string)) error
}

// Near is a passage that is near to a question.
type Near struct {
	Path       string // relative to the root
	Start, End int    // lines
	Symbol     string
	Score      float64 // from 0 to 1
}

// Semantic finds passages of code by meaning. A root is its scope. Safe for concurrent use.
type Semantic interface {
	// Near returns the passages of a root that are nearest to a question, best first. ctx carries the payer.
	Near(ctx context.Context, root, question string, limit int) ([]Near, error)
	// Indexed says that the passages of a root have changed. It returns at once; Index.Passages gives them.
	Indexed(root string)
	// Forget removes what is stored about a root.
	Forget(ctx context.Context, root string) error
}

// Options configures an Index. Sources is required.
type Options struct {
	Sources   *file.Sources
	Store     Store              // nil = nothing is kept over a restart
	Watcher   Watcher            // nil = each search looks for changed files
	Semantic  Semantic           // nil = none
	Server    Server             // a language server; nil = none
	Asks      Asks               // what it is asked
	Languages []outline.Language // nil = all
	// directories that are searched instead of those of the file tools, as far as these reach them; nil = those
	Places func(tools.Origin) ([]string, error)
	Log    zerolog.Logger
	Now    func() time.Time // nil = time.Now

	MaxFiles   int           // of one root; 0 = 50 000
	MaxSymbols int           // in memory, of all roots; 0 = 400 000
	Patience   time.Duration // how long a search waits for the index of a root; 0 = 20 s
}

// Index knows the symbols of directories. Safe for concurrent use.
type Index struct {
	Options
	mu    sync.Mutex
	roots map[string]*root
	used  int64         // counts uses, to find the root that was not used for the longest time
	once  sync.Map      // sentences that were logged
	kick  chan struct{} // a watched root has changed
}

// New returns an Index. It reads nothing before it is asked.
func New(o Options) (*Index, error) {
	if o.Sources == nil {
		return nil, errors.New("code index: no sources")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 50_000
	}
	if o.MaxSymbols <= 0 {
		o.MaxSymbols = 400_000
	}
	if o.Patience <= 0 {
		o.Patience = 20 * time.Second
	}
	return &Index{Options: o, roots: map[string]*root{}, kick: make(chan struct{}, 1)}, nil
}

// languageOf returns the language of a file that is indexed; "" = it is not.
func (x *Index) languageOf(name string) outline.Language {
	lang := outline.Of(name)
	if lang == "" || len(x.Languages) > 0 && !slices.Contains(x.Languages, lang) {
		return ""
	}
	return lang
}

// loadRoot returns the state of a directory, which is loaded at first use.
func (x *Index) loadRoot(path string) *root {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.roots[path]
	if r == nil {
		r = &root{path: path, turn: make(chan struct{}, 1), files: map[string]*indexed{}, dirty: true}
		x.roots[path] = r
	}
	x.used++
	r.used = x.used
	return r
}

// trimRoots drops the roots that were not used for the longest time from memory, except for one.
func (x *Index) trimRoots(keep *root) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		total := 0
		var oldest *root
		for _, r := range x.roots {
			total += r.size()
			if r != keep && (oldest == nil || r.used < oldest.used) {
				oldest = r
			}
		}
		if total <= x.MaxSymbols || oldest == nil {
			return
		}
		delete(x.roots, oldest.path)
		if x.Watcher != nil {
			x.Watcher.Unwatch(oldest.path)
		}
	}
}

// logOnce logs a problem once.
func (x *Index) logOnce(err error, text string) {
	if _, said := x.once.LoadOrStore(text, true); !said {
		x.Log.Warn().Err(err).Msg(text)
	}
}

// searchedDirs returns the directories that a call searches.
func (x *Index) searchedDirs(view *file.View, origin tools.Origin) ([]string, error) {
	if x.Places == nil {
		return view.Roots(nil), nil
	}
	among, err := x.Places(origin)
	if err != nil {
		return nil, err
	}
	return view.Roots(among), nil
}
