package recall

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/agent/knn"
)

// Search returns at most limit texts of the scopes whose meaning is nearest to a text, the nearest first. It embeds
// that text, for which the payer in ctx pays, unless the cache has it. Errors are knn.ErrNoScope, those of
// spend.Embedder, and those of the store.
func (x *Index) Search(ctx context.Context, scopes []string, text string, limit int) ([]knn.Hit, error) {
	if len(scopes) == 0 || slices.Contains(scopes, "") {
		return nil, knn.ErrNoScope
	}
	if limit <= 0 || text == "" {
		return nil, nil
	}
	kind, _, err := x.readKinds(ctx)
	if err != nil {
		return nil, err
	}
	formers, err := x.servingFormers(ctx, scopes)
	if err != nil {
		return nil, err
	}
	rest := slices.Clone(scopes)
	var hits []knn.Hit
	for _, f := range formers {
		found, err := x.searchKind(ctx, query{
			by: f.embedder, filter: knn.Filter{Scopes: f.scopes}, text: text, limit: limit,
			size: f.kind.Size, kind: func(int) knn.Kind { return f.kind },
		})
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // the old model may be gone; the new index is complete soon
			x.o.Log.Debug().Err(err).Str("collection", x.o.Name).
				Str("model", f.kind.Model).Msg("the former index cannot be asked")
			continue
		}
		hits = append(hits, found...)
		rest = slices.DeleteFunc(rest, func(scope string) bool { return slices.Contains(f.scopes, scope) })
	}
	if len(rest) > 0 {
		found, err := x.searchKind(ctx, query{
			by:     x.current,
			filter: knn.Filter{Scopes: rest},
			text:   text,
			limit:  limit,
			size:   kind.Size,
			kind:   x.noteSize,
		})
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	knn.SortHits(hits)
	return hits[:min(limit, len(hits))], nil
}

// Compare returns how similar in meaning a text is to others, from 0 to 1, in their order. Nothing is stored but what the
// cache keeps. The payer in ctx pays for what the cache does not have; the errors are those of spend.Embedder.
func (x *Index) Compare(ctx context.Context, text string, others []string) ([]float32, error) {
	if len(others) == 0 {
		return nil, nil
	}
	texts := []string{cutText(text)}
	for _, other := range others {
		texts = append(texts, cutText(other))
	}
	kind, _, err := x.readKinds(ctx)
	if err != nil {
		return nil, err
	}
	vectors, err := x.current.embedTexts(ctx, texts, kind.Size)
	if err != nil {
		return nil, err
	}
	similar, of := make([]float32, len(others)), knn.Unit(vectors[0])
	for i := range others {
		similar[i] = max(0, knn.Dot(of, knn.Unit(vectors[i+1])))
	}
	return similar, nil
}

// query is a question to one kind.
type query struct {
	by     *embedder
	filter knn.Filter
	text   string
	limit  int
	size   int                     // of the vectors that are expected; 0 = unknown
	kind   func(size int) knn.Kind // to search in
}

// searchKind searches in the points of one kind.
func (x *Index) searchKind(ctx context.Context, q query) ([]knn.Hit, error) {
	vectors, err := q.by.embedTexts(ctx, []string{cutText(q.text)}, q.size)
	if err != nil {
		return nil, err
	}
	space, err := x.spaceOf(q.kind(len(vectors[0])))
	if err != nil {
		return nil, err
	}
	hits, err := space.Search(ctx, q.filter, vectors[0], q.limit)
	if err != nil {
		return nil, fmt.Errorf("search the index of %s: %w", x.o.Name, err)
	}
	return hits, nil
}

// former is a kind that still answers for some scopes.
type former struct {
	kind     knn.Kind
	embedder *embedder
	scopes   []string
}

// servingFormers lists the former kinds that answer for scopes, each scope once. Kinds
// that nobody can ask are left out.
func (x *Index) servingFormers(ctx context.Context, scopes []string) ([]former, error) {
	_, kinds, err := x.readKinds(ctx)
	if err != nil || len(kinds) == 0 || x.o.Former == nil {
		return nil, err
	}
	var list []former
	left := slices.Clone(scopes)
	for _, kind := range kinds {
		if kind.Model == x.o.Model {
			continue // of another length, which the model does not return any more
		}
		paid := x.o.Former(kind.Model)
		if paid == nil {
			continue
		}
		owners, err := x.o.Spaces.Owners(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("read the owners of %s: %w", x.o.Name, err)
		}
		f := former{kind: kind, embedder: x.newEmbedder(kind.Model, paid)}
		left = slices.DeleteFunc(left, func(scope string) bool {
			has := slices.Contains(owners, scope)
			if has {
				f.scopes = append(f.scopes, scope)
			}
			return has
		})
		if len(f.scopes) > 0 {
			list = append(list, f)
		}
	}
	return list, nil
}

// retireFormers removes a scope, which is complete in the current kind, from the former ones,
// and drops those that are empty.
func (x *Index) retireFormers(ctx context.Context, scope string) error {
	_, kinds, err := x.readKinds(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range kinds {
		empty, err := x.leaveKind(ctx, kind, scope)
		if err != nil {
			errs = append(errs, fmt.Errorf("remove the former index of %s: %w", x.o.Name, err))
			continue
		}
		if empty {
			x.mu.Lock()
			x.formers = slices.DeleteFunc(x.formers, func(k knn.Kind) bool { return k == kind })
			x.mu.Unlock()
			x.o.Log.Info().Str("collection", x.o.Name).Str("model", kind.Model).
				Int("size", kind.Size).Msg("dropped a former index")
		}
	}
	return errors.Join(errs...)
}

// leaveKind removes a scope from a kind, and the kind if nothing is left of it.
func (x *Index) leaveKind(ctx context.Context, kind knn.Kind, scope string) (empty bool, err error) {
	space, err := x.spaceOf(kind)
	if err != nil {
		return false, err
	}
	if err := space.Forget(ctx, scope); err != nil {
		return false, err
	}
	owners, err := x.o.Spaces.Owners(ctx, kind)
	if err != nil || len(owners) > 0 {
		return false, err
	}
	return true, x.o.Spaces.Drop(ctx, kind)
}
