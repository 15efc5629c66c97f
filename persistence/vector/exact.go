package vector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
)

const (
	// memoryLimit bounds the copies of vectors in memory, of all owners together: at least 32 000 vectors of 512
	// numbers, and 127 000 of one owner. What does not fit is read from the database for each search.
	memoryLimit = 64 << 20
	// manyCandidates is the share of vectors of which it is faster to read all than each by its id: one of so many.
	manyCandidates = 4
	// fetchAtOnce is the number of candidates that are read by one query.
	fetchAtOnce = 512
)

// nearest is implemented by rows whose database can search by itself.
type nearest interface {
	// Nearest calls see for at most limit vectors of a scope, the most similar first. query has length 1, or is zero.
	// ok is false if the database cannot do it now; then nothing was seen.
	Nearest(
		ctx context.Context, kind knn.Kind, scope string, query []float32, limit int, see func(id int64, score float32),
	) (ok bool, err error)
}

// exact is knn.Spaces over a database. It compares the query with every vector of the scopes: 10 000 vectors of 512
// numbers take about 2 ms, which no index on disk beats, and none is missed. It keeps copies of the vectors of
// the scopes that were searched last, up to a limit in bytes, those of large scopes as codes of a byte for each
// number; each search first reads the versions of its scopes, so that the copies are never older than what is
// stored, also by another process.
type exact struct {
	knn.Rows
	limit int64 // bytes
	log   zerolog.Logger

	loading sync.Mutex // held by the search that makes a copy; the others read without one
	mu      sync.Mutex
	bytes   int64
	shelves map[shelfKey]*shelf
	clock   uint64 // of uses
}

type shelfKey struct {
	kind  knn.Kind
	scope string
}

// newExact returns Spaces over rows. limit bounds the memory of copies in bytes; 0 = memoryLimit.
func newExact(rows knn.Rows, limit int64, log zerolog.Logger) *exact {
	if limit <= 0 {
		limit = memoryLimit
	}
	return &exact{Rows: rows, limit: limit, log: log, shelves: map[shelfKey]*shelf{}}
}

// Space implements knn.Spaces.
func (e *exact) Space(kind knn.Kind) (knn.Space, error) {
	if err := kind.Check(); err != nil {
		return nil, err
	}
	return &exactSpace{exact: e, kind: kind}, nil
}

// exactSpace is a knn.Space.
type exactSpace struct {
	*exact
	kind knn.Kind
}

// Hashes implements knn.Space.
func (s *exactSpace) Hashes(ctx context.Context, scope string) (map[string]string, error) {
	if err := knn.CheckScope(scope); err != nil {
		return nil, err
	}
	return s.Rows.Hashes(ctx, s.kind, scope)
}

// Upsert implements knn.Space.
func (s *exactSpace) Upsert(ctx context.Context, points []knn.Point) error {
	rows := make([]knn.Row, len(points))
	for i, p := range points {
		if err := s.kind.CheckPoint(p); err != nil {
			return err
		}
		rows[i] = knn.Row{Scope: p.Scope, Key: p.Key, Hash: p.Hash}
		if len(p.Payload) > 0 {
			text, err := json.Marshal(p.Payload)
			if err != nil {
				return fmt.Errorf("payload of %.40q: %w", p.Key, err)
			}
			rows[i].Payload = string(text)
		}
		if len(p.Vector) > 0 {
			rows[i].Vector = knn.EncodeVector(knn.Unit(p.Vector))
		}
	}
	for batch := range slices.Chunk(rows, knn.UpsertMost) {
		if err := s.Store(ctx, s.kind, batch); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements knn.Space.
func (s *exactSpace) Delete(ctx context.Context, scope string, keys []string) error {
	if err := knn.CheckScope(scope); err != nil || len(keys) == 0 {
		return err
	}
	return s.Remove(ctx, s.kind, scope, keys)
}

// Forget implements knn.Space.
func (s *exactSpace) Forget(ctx context.Context, scope string) error {
	if err := knn.CheckScope(scope); err != nil {
		return err
	}
	s.dropShelf(shelfKey{s.kind, scope})
	return s.Rows.Forget(ctx, s.kind, scope)
}

// pointPlace is where a candidate was found.
type pointPlace struct {
	scope string
	id    int64
}

// Search implements knn.Space.
func (s *exactSpace) Search(ctx context.Context, f knn.Filter, vector []float32, limit int) ([]knn.Hit, error) {
	if err := s.kind.CheckSearch(f, vector); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	query := knn.Unit(vector)
	top := &knn.Top[pointPlace]{Limit: min(limit, knn.MostHits)}
	scopes := slices.Clone(f.Scopes)
	slices.Sort(scopes)
	for _, scope := range slices.Compact(scopes) {
		if err := s.searchScope(ctx, scope, query, top); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
	}
	return s.nameHits(ctx, top.Best())
}

// searchScope offers the vectors of a scope as candidates.
func (s *exactSpace) searchScope(ctx context.Context, scope string, query []float32, top *knn.Top[pointPlace]) error {
	if able, ok := s.Rows.(nearest); ok {
		offer := func(id int64, score float32) { top.Add(score, pointPlace{scope, id}) }
		if ok, err := able.Nearest(ctx, s.kind, scope, query, top.Limit, offer); ok || err != nil {
			return err
		}
	}
	version, err := s.Version(ctx, s.kind, scope)
	if err != nil || version == 0 {
		return err
	}
	at := shelfKey{s.kind, scope}
	kept := s.takeShelf(at, version)
	if kept == nil || kept.large {
		return s.readScope(ctx, at, version, query, top, kept == nil)
	}
	if !kept.coded {
		return kept.compareAll(ctx, scope, query, top)
	}
	ids, err := kept.findCandidates(ctx, query, top.Limit, top.Floor())
	if err != nil {
		return err
	}
	if len(ids) > len(kept.ids)/manyCandidates {
		return s.readScope(ctx, at, version, query, top, false)
	}
	for some := range slices.Chunk(ids, fetchAtOnce) {
		if err := s.Vectors(ctx, s.kind, scope, some, s.offerTo(scope, query, top)); err != nil {
			return err
		}
	}
	return nil
}

// offerTo returns a function that compares a stored vector. One of a wrong length is skipped.
func (s *exactSpace) offerTo(
	scope string, query []float32, top *knn.Top[pointPlace],
) func(id int64, data []byte) error {
	one := make([]float32, s.kind.Size)
	return func(id int64, data []byte) error {
		if s.isOdd(id, data) {
			return nil
		}
		knn.DecodeVector(one, data)
		if score := knn.Dot(query, one); top.Wants(score) {
			top.Add(score, pointPlace{scope, id})
		}
		return nil
	}
}

// isOdd reports and logs that a stored vector has a wrong length.
func (s *exactSpace) isOdd(id int64, data []byte) bool {
	if len(data) == 4*s.kind.Size {
		return false
	}
	s.log.Warn().Str("collection", s.kind.Name).Int64("id", id).Msg("skipped a stored vector of a wrong length")
	return true
}

// readScope searches in the database, and keeps a copy on the way if keep is set and the limit allows it.
func (s *exactSpace) readScope(
	ctx context.Context, at shelfKey, version int64, query []float32, top *knn.Top[pointPlace], keep bool,
) error {
	if keep = keep && s.loading.TryLock(); keep {
		defer s.loading.Unlock()
	}
	offer := s.offerTo(at.scope, query, top)
	copied := &shelf{version: version}
	one := make([]float32, s.kind.Size)
	err := s.EachVector(ctx, s.kind, at.scope, func(id int64, data []byte) error {
		if keep && len(data) == 4*s.kind.Size {
			knn.DecodeVector(one, data)
			if !copied.addVector(id, one, s.limit) {
				keep, copied = false, &shelf{version: version, large: true}
			}
		}
		return offer(id, data)
	})
	if err == nil && (keep || copied.large) {
		s.keepShelf(at, copied)
	}
	return err
}

// nameHits returns the hits with their keys and payloads. One that was removed meanwhile is left out.
func (s *exactSpace) nameHits(ctx context.Context, best []knn.Candidate[pointPlace]) ([]knn.Hit, error) {
	ids, scores := map[string][]int64{}, map[int64]float32{}
	for _, c := range best {
		ids[c.What.scope] = append(ids[c.What.scope], c.What.id)
		scores[c.What.id] = c.Score
	}
	hits := make([]knn.Hit, 0, len(best))
	for scope, list := range ids {
		err := s.Named(ctx, s.kind, scope, list, func(id int64, key, payload string) {
			hit := knn.Hit{Scope: scope, Key: key, Score: scores[id]}
			if payload != "" {
				if err := json.Unmarshal([]byte(payload), &hit.Payload); err != nil {
					s.log.Warn().Err(err).Str("key", key).Msg("the payload of a stored vector cannot be read")
				}
			}
			hits = append(hits, hit)
		})
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
	}
	knn.SortHits(hits)
	return hits, nil
}

// takeShelf returns the copy of a scope, if it has this version.
func (e *exact) takeShelf(at shelfKey, version int64) *shelf {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.shelves[at]
	if kept == nil || kept.version != version {
		return nil
	}
	e.clock++
	kept.used = e.clock
	return kept
}

// keepShelf stores a copy, and drops those that were not used for the longest time if they are too large together.
func (e *exact) keepShelf(at shelfKey, copied *shelf) {
	e.dropShelf(at)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock++
	copied.used = e.clock
	e.shelves[at] = copied
	e.bytes += copied.size
	for e.bytes > e.limit || len(e.shelves) > mostShelves {
		var oldest shelfKey
		least := uint64(1<<64 - 1)
		for key, s := range e.shelves {
			if s.used < least {
				oldest, least = key, s.used
			}
		}
		e.bytes -= e.shelves[oldest].size
		delete(e.shelves, oldest)
	}
}

// mostShelves bounds the number of scopes that are remembered.
const mostShelves = 4096

func (e *exact) dropShelf(at shelfKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if kept := e.shelves[at]; kept != nil {
		e.bytes -= kept.size
		delete(e.shelves, at)
	}
}
