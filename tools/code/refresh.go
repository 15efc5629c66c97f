package code

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// batchSize is how many files are stored and shown to searches together.
const batchSize = 256

// mostWorkers limits how many files are read at once, and so the memory for them.
const mostWorkers = 4

// Progress tells how many of the changed files of a root were read.
type Progress struct{ Done, Total int }

// Refresh brings the index of a root up to date. A file with the same stamp costs nothing besides the walk, one with
// the same content costs reading it. What was read before ctx ends is kept.
func (x *Index) Refresh(ctx context.Context, path string, progress func(Progress)) error {
	r := x.loadRoot(path)
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	if err := x.refreshRoot(ctx, r, progress); err != nil {
		r.touchRoot()
		return err
	}
	x.trimRoots(r)
	return nil
}

// refreshRoot does the work of Refresh. The caller holds the root's turn.
func (x *Index) refreshRoot(ctx context.Context, r *root, progress func(Progress)) error {
	x.loadStored(ctx, r)
	r.mu.Lock()
	r.dirty = false // what changes from now on makes it dirty again
	r.mu.Unlock()
	tree, err := x.walkRoot(ctx, r.path)
	if err != nil {
		return fmt.Errorf("read the directories: %w", err)
	}
	x.watchDirs(r, tree.Dirs)
	changed, gone := r.compareTree(tree)
	if err := x.readChanged(ctx, r, changed, gone, progress); err != nil {
		return err
	}
	r.mu.Lock()
	r.walked = x.Now()
	r.partial = tree.Stopped
	r.mu.Unlock()
	if x.Semantic != nil && len(changed)+len(gone) > 0 {
		x.Semantic.Indexed(r.path)
	}
	return nil
}

// walkRoot lists the files of a root that are indexed.
func (x *Index) walkRoot(ctx context.Context, path string) (file.Tree, error) {
	view := x.Sources.Below(ctx, path)
	defer view.Close()
	tree, err := view.Walk(path, func(name string) bool { return x.languageOf(name) != "" })
	if err != nil || len(tree.Files) <= x.MaxFiles {
		return tree, err
	}
	for _, name := range slices.Sorted(maps.Keys(tree.Files))[x.MaxFiles:] {
		delete(tree.Files, name)
	}
	tree.Stopped = fmt.Sprintf("only %d files are indexed", x.MaxFiles)
	return tree, nil
}

// watchDirs watches the directories of a root.
func (x *Index) watchDirs(r *root, dirs []string) {
	if x.Watcher == nil {
		return
	}
	err := x.Watcher.Watch(r.path, dirs)
	if err != nil {
		x.logOnce(err, "code index: not all directories can be watched; each search looks for changed files instead")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && !r.watched { // what changed between the walk and the watch was not reported
		r.dirty = true
	}
	r.watched = err == nil
}

// loadStored reads what is stored about a root, once.
func (x *Index) loadStored(ctx context.Context, r *root) {
	if x.Store == nil || r.loaded {
		return
	}
	r.loaded = true
	err := x.Store.Load(ctx, r.path, func(s Stored) error {
		k, err := decodeKnown(s.Outline)
		if err != nil {
			return nil //nolint:nilerr // it is read again
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.putFile(s.Path, s.Stamp, s.Hash, k)
		return nil
	})
	if err != nil {
		x.logOnce(err, "code index: what was stored cannot be read; the files are read again")
	}
}

// compareTree returns which files of a tree must be read, and which of the index are gone.
func (r *root) compareTree(tree file.Tree) (changed, gone []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, stamp := range tree.Files {
		if f := r.files[name]; f == nil || f.stamp != stamp {
			changed = append(changed, name)
		}
	}
	for name := range r.files {
		if _, ok := tree.Files[name]; !ok && tree.Stopped == "" {
			gone = append(gone, name)
		}
	}
	slices.Sort(changed)
	return changed, gone
}

// parsed is a file that was read.
type parsed struct {
	path  string
	stamp file.Stamp
	hash  string
	known known
	same  bool // the content is what is indexed
	gone  bool // it cannot be read any more
}

// readChanged reads files with several workers and stores them batch by batch.
func (x *Index) readChanged(ctx context.Context, r *root, changed, gone []string, progress func(Progress)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	names := make(chan string)
	results := make(chan parsed, mostWorkers)
	var wg sync.WaitGroup
	for range min(mostWorkers, max(2, runtime.GOMAXPROCS(0)), max(1, len(changed))) {
		wg.Go(func() {
			view := x.Sources.Below(ctx, r.path)
			defer view.Close()
			for name := range names {
				results <- x.parseFile(view, r, name)
			}
		})
	}
	wg.Go(func() {
		defer close(names)
		for _, name := range changed {
			select {
			case names <- name:
			case <-ctx.Done():
				return
			}
		}
	})
	var closing sync.WaitGroup
	closing.Go(func() {
		wg.Wait()
		close(results)
	})
	defer closing.Wait()
	var batch []parsed
	for _, name := range gone {
		batch = append(batch, parsed{path: name, gone: true})
	}
	done := 0
	for p := range results {
		batch = append(batch, p)
		done++
		if len(batch) < batchSize {
			continue
		}
		x.keepBatch(ctx, r, batch)
		batch = batch[:0]
		if progress != nil {
			progress(Progress{Done: done, Total: len(changed)})
		}
	}
	x.keepBatch(ctx, r, batch)
	return ctx.Err()
}

// parseFile reads one file. A defect of a scanner costs that file and not the service.
func (x *Index) parseFile(view *file.View, r *root, name string) (p parsed) {
	p.path = name
	defer func() {
		if failure := recover(); failure != nil {
			x.Log.Error().Interface("panic", failure).Str("file", name).Msg("code index: a file was not understood")
			p.known.symbols = nil
		}
	}()
	content, stamp, err := view.Read(r.path+"/"+name, outline.MaxBytes+1)
	if err != nil {
		p.gone = true
		return p
	}
	sum := sha256.Sum256(content)
	p.stamp, p.hash = stamp, string(sum[:])
	if x.Now().UnixNano()-stamp.Modified < int64(racy) { // it may change again without another stamp
		p.stamp.Changed = 0
	}
	r.mu.RLock()
	old := r.files[name]
	p.same = old != nil && old.hash == p.hash
	r.mu.RUnlock()
	if !p.same {
		p.known = learnFile(x.languageOf(name), content)
	}
	return p
}

// racy is the resolution of times in file systems, in nanoseconds.
const racy = 20_000_000

// keepBatch puts a batch into memory and into the store.
func (x *Index) keepBatch(ctx context.Context, r *root, batch []parsed) {
	if len(batch) == 0 {
		return
	}
	var put []Stored
	var gone []string
	r.mu.Lock()
	for i := range batch {
		p := &batch[i]
		switch old := r.files[p.path]; {
		case p.gone:
			r.removeFile(p.path)
			gone = append(gone, p.path)
			continue
		case p.same && old != nil:
			old.stamp = p.stamp
		case r.symbols+len(p.known.symbols) > x.MaxSymbols:
			r.partial = "there are too many symbols"
			continue
		default:
			r.putFile(p.path, p.stamp, p.hash, p.known)
		}
		if x.Store != nil {
			put = append(put, Stored{Path: p.path, Stamp: p.stamp, Hash: p.hash, Outline: encodeUnlessSame(p)})
		}
	}
	r.mu.Unlock()
	if x.Store == nil {
		return
	}
	if err := x.Store.Save(context.WithoutCancel(ctx), r.path, put, gone); err != nil {
		x.logOnce(err, "code index: cannot be stored; it is in memory only")
	}
}

// encodeUnlessSame returns nil for content that is stored already.
func encodeUnlessSame(p *parsed) []byte {
	if p.same {
		return nil
	}
	return encodeKnown(p.known)
}
