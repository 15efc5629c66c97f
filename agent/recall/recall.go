// Package recall finds texts by their meaning. An Index embeds the texts of many owners with a model that is paid for,
// keeps their vectors in a knn.Space, and searches among those of the owners that it is asked for. It knows nothing
// about what the texts are: code (see Code) and memories use it alike.
//
// The vectors are derived. Whoever holds the texts calls Sync, which embeds what is new or changed and removes what is
// gone; an index that was lost is made again by the same call.
package recall

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/spend"
)

// Doc is a text that can be found.
type Doc struct {
	Key  string // unique in its scope
	Text string // what is embedded; the first TextBytes of it count
	// Payload is returned with hits, for example path and lines. It can change without the text being embedded again.
	Payload map[string]string
}

// Docs makes a sequence of a list, for Sync.
func Docs(list ...Doc) iter.Seq2[Doc, error] {
	return func(yield func(Doc, error) bool) {
		for _, d := range list {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Report counts what a Sync has done so far.
type Report struct {
	Added, Updated int // embedded and stored
	Restated       int // only the payload changed
	Unchanged      int
	Removed        int
	Skipped        int // refused by the model or the store, for example as too long
}

// Seen is the number of texts that were looked at.
func (r Report) Seen() int { return r.Added + r.Updated + r.Restated + r.Unchanged + r.Skipped }

// Options of New. Name, Spaces, Model and Embedder are required.
type Options struct {
	Name     string // of the collection, such as "code"
	Spaces   knn.Spaces
	Model    string // whose vectors Embedder returns
	Embedder *spend.Embedder
	// Former returns the embedder of a model that was configured before, or nil. While the vectors of a scope are made
	// again by the new model, questions are answered from the old ones, if this can embed them; otherwise from what is
	// there of the new ones. May be nil.
	Former func(model string) *spend.Embedder
	Cache  Cache        // of vectors by the hash of model and text; nil = none
	Retry  *route.Retry // of calls that failed for a moment; nil = none
	Now    func() time.Time
	Log    zerolog.Logger
}

// Cache keeps values for a while, in groups whose size it bounds. It may forget anything at any
// time. Safe for concurrent use.
type Cache interface {
	// Get returns the value of a key in a group; nil = it has none.
	Get(ctx context.Context, group, key string) ([]byte, error)
	// Set stores a copy of a value.
	Set(ctx context.Context, group, key string, value []byte) error
}

// Index is a searchable collection. Safe for concurrent use, also by several processes with a store that they share:
// what one stores, the others find.
type Index struct {
	o       Options
	current *embedder

	mu      sync.Mutex
	looked  bool                     // the kinds below have been read
	kind    knn.Kind                 // in use; Size is 0 until the model has returned a vector
	formers []knn.Kind               // have points of other models or lengths
	syncs   map[string]chan struct{} // the scopes that are being synced; closed when that is over
	refused map[[32]byte]time.Time   // digests of texts that the model does not take, and when they may be sent again
}

// New returns an index. It reads and embeds nothing yet.
func New(o Options) (*Index, error) {
	if err := (knn.Kind{Name: o.Name, Model: o.Model, Size: 1}).Check(); err != nil {
		return nil, fmt.Errorf("index of texts: %w", err)
	}
	if o.Spaces == nil || o.Embedder == nil {
		return nil, fmt.Errorf("index of texts %s: a store or an embedder is missing", o.Name)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	x := &Index{
		o:       o,
		kind:    knn.Kind{Name: o.Name, Model: o.Model},
		syncs:   map[string]chan struct{}{},
		refused: map[[32]byte]time.Time{},
	}
	x.current = x.newEmbedder(o.Model, o.Embedder)
	return x, nil
}

// readKinds reads which kinds the store has, once.
func (x *Index) readKinds(ctx context.Context) (knn.Kind, []knn.Kind, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.looked {
		kinds, err := x.o.Spaces.Kinds(ctx, x.o.Name)
		if err != nil {
			return knn.Kind{}, nil, fmt.Errorf("read the collections of %s: %w", x.o.Name, err)
		}
		var own []knn.Kind
		for _, kind := range kinds {
			if kind.Model == x.o.Model {
				own = append(own, kind)
			}
		}
		if len(own) == 1 { // of several lengths, the one that the model returns is in use; see sized
			x.kind = own[0]
		}
		x.formers = slices.DeleteFunc(kinds, func(kind knn.Kind) bool { return kind == x.kind })
		x.looked = true
	}
	return x.kind, slices.Clone(x.formers), nil
}

// noteSize notes that the model returned vectors of a length. If it is another one than before, all of them have to be
// made again, beside the old ones.
func (x *Index) noteSize(size int) knn.Kind {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kind.Size != size {
		if x.kind.Size != 0 {
			x.o.Log.Warn().Str("collection", x.o.Name).Str("model", x.o.Model).
				Int("before", x.kind.Size).Int("now", size).
				Msg("the model returns vectors of another length; its index is made again")
			x.formers = append(x.formers, x.kind)
		}
		x.kind.Size = size
		x.formers = slices.DeleteFunc(x.formers, func(k knn.Kind) bool { return k == x.kind })
	}
	return x.kind
}

// spaceOf returns the Space of a kind; nil = nothing is stored, because no length is known.
func (x *Index) spaceOf(kind knn.Kind) (knn.Space, error) {
	if kind.Size == 0 {
		return nil, nil
	}
	space, err := x.o.Spaces.Space(kind)
	if err != nil {
		return nil, fmt.Errorf("open the collection %s: %w", x.o.Name, err)
	}
	return space, nil
}

// Put embeds and stores some texts of a scope and leaves the others as they are.
func (x *Index) Put(ctx context.Context, scope string, docs ...Doc) error {
	release, err := x.acquireScope(ctx, scope)
	if err != nil {
		return err
	}
	defer release()
	kind, _, err := x.readKinds(ctx)
	if err != nil {
		return err
	}
	vectors, err := x.current.embedTexts(ctx, textsOf(docs), kind.Size)
	if err != nil {
		return err
	}
	if len(vectors) == 0 {
		return nil
	}
	if err := x.storePoints(ctx, x.noteSize(len(vectors[0])), scope, docs, vectors); err != nil {
		return err
	}
	formers, err := x.servingFormers(ctx, []string{scope})
	if err != nil {
		return err
	}
	for _, f := range formers { // questions are still answered from there
		vectors, err := f.embedder.embedTexts(ctx, textsOf(docs), f.kind.Size)
		if err != nil {
			return err
		}
		if err := x.storePoints(ctx, f.kind, scope, docs, vectors); err != nil {
			return err
		}
	}
	return nil
}

func textsOf(docs []Doc) []string {
	texts := make([]string, len(docs))
	for i, d := range docs {
		texts[i] = cutText(d.Text)
	}
	return texts
}

func (x *Index) storePoints(ctx context.Context, kind knn.Kind, scope string, docs []Doc, vectors [][]float32) error {
	space, err := x.spaceOf(kind)
	if err != nil {
		return err
	}
	points := make([]knn.Point, len(docs))
	for i, d := range docs {
		points[i] = knn.Point{Scope: scope, Key: d.Key, Hash: hashOf(d), Vector: vectors[i], Payload: d.Payload}
	}
	if err := space.Upsert(ctx, points); err != nil {
		return fmt.Errorf("store vectors of %s: %w", x.o.Name, err)
	}
	return nil
}

// Delete removes texts of a scope. Unknown keys are ignored.
func (x *Index) Delete(ctx context.Context, scope string, keys ...string) error {
	return x.removeEverywhere(ctx, scope, func(space knn.Space) error { return space.Delete(ctx, scope, keys) })
}

// Forget removes all texts of a scope.
func (x *Index) Forget(ctx context.Context, scope string) error {
	return x.removeEverywhere(ctx, scope, func(space knn.Space) error { return space.Forget(ctx, scope) })
}

// removeEverywhere applies a removal to the current kind and to the former ones.
func (x *Index) removeEverywhere(ctx context.Context, scope string, remove func(knn.Space) error) error {
	release, err := x.acquireScope(ctx, scope)
	if err != nil {
		return err
	}
	defer release()
	kind, formers, err := x.readKinds(ctx)
	if err != nil {
		return err
	}
	for _, kind := range append(formers, kind) {
		space, err := x.spaceOf(kind)
		if err != nil {
			return err
		}
		if space == nil {
			continue
		}
		if err := remove(space); err != nil {
			return fmt.Errorf("remove vectors of %s: %w", x.o.Name, err)
		}
	}
	return nil
}

// acquireScope waits until no other call changes the scope, at most until ctx ends.
func (x *Index) acquireScope(ctx context.Context, scope string) (release func(), err error) {
	if err := knn.CheckScope(scope); err != nil {
		return nil, err
	}
	for {
		x.mu.Lock()
		running := x.syncs[scope]
		if running == nil {
			done := make(chan struct{})
			x.syncs[scope] = done
			x.mu.Unlock()
			return func() {
				x.mu.Lock()
				delete(x.syncs, scope)
				x.mu.Unlock()
				close(done)
			}, nil
		}
		x.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the index of %s: %w", x.o.Name, ctx.Err())
		}
	}
}

// errGarbled is the error of a model that did not return one vector of the same length for each text.
var errGarbled = errors.New("the model returned vectors that do not fit the texts")
