package knn

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// MemorySpaces are Spaces in this process, lost with it, with exact search. Safe for concurrent use.
type MemorySpaces struct {
	mu     sync.Mutex
	spaces map[Kind]*memorySpace
}

// NewSpaces returns empty Spaces.
func NewSpaces() *MemorySpaces { return &MemorySpaces{spaces: map[Kind]*memorySpace{}} }

// Space implements Spaces.
func (m *MemorySpaces) Space(kind Kind) (Space, error) {
	if err := kind.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[kind]
	if s == nil {
		s = &memorySpace{kind: kind, scopes: map[string]map[string]Point{}}
		m.spaces[kind] = s
	}
	return s, nil
}

// Kinds implements Spaces.
func (m *MemorySpaces) Kinds(_ context.Context, name string) ([]Kind, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kinds []Kind
	for kind, s := range m.spaces {
		if kind.Name == name && len(s.listOwners()) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// Owners implements Spaces.
func (m *MemorySpaces) Owners(_ context.Context, kind Kind) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.spaces[kind]; s != nil {
		return s.listOwners(), nil
	}
	return nil, nil
}

// Drop implements Spaces.
func (m *MemorySpaces) Drop(_ context.Context, kind Kind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.spaces[kind]; s != nil {
		s.mu.Lock()
		clear(s.scopes)
		s.mu.Unlock()
	}
	return nil
}

// memorySpace is a Space. The vectors of its points have length 1.
type memorySpace struct {
	kind Kind

	mu     sync.RWMutex
	scopes map[string]map[string]Point
}

func (s *memorySpace) listOwners() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.scopes))
}

// Hashes implements Space.
func (s *memorySpace) Hashes(ctx context.Context, scope string) (map[string]string, error) {
	if err := CheckScope(scope); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make(map[string]string, len(s.scopes[scope]))
	for key, p := range s.scopes[scope] {
		all[key] = p.Hash
	}
	return all, nil
}

// Upsert implements Space.
func (s *memorySpace) Upsert(ctx context.Context, points []Point) error {
	for _, p := range points {
		if err := s.kind.CheckPoint(p); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range points {
		if len(p.Vector) > 0 {
			p.Vector = Unit(p.Vector)
		} else if p.Vector = s.scopes[p.Scope][p.Key].Vector; p.Vector == nil {
			continue
		}
		p.Payload = maps.Clone(p.Payload)
		if s.scopes[p.Scope] == nil {
			s.scopes[p.Scope] = map[string]Point{}
		}
		s.scopes[p.Scope][p.Key] = p
	}
	return nil
}

// Delete implements Space.
func (s *memorySpace) Delete(_ context.Context, scope string, keys []string) error {
	if err := CheckScope(scope); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.scopes[scope], key)
	}
	if len(s.scopes[scope]) == 0 {
		delete(s.scopes, scope)
	}
	return nil
}

// Forget implements Space.
func (s *memorySpace) Forget(_ context.Context, scope string) error {
	if err := CheckScope(scope); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.scopes, scope)
	return nil
}

// Search implements Space.
func (s *memorySpace) Search(ctx context.Context, filter Filter, vector []float32, limit int) ([]Hit, error) {
	if err := s.kind.CheckSearch(filter, vector); err != nil {
		return nil, err
	}
	if limit <= 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	query := Unit(vector)
	var hits []Hit
	s.mu.RLock()
	for scope, points := range s.scopes {
		if !filter.Has(scope) {
			continue
		}
		for _, p := range points {
			hits = append(hits, Hit{
				Scope:   scope,
				Key:     p.Key,
				Score:   Dot(query, p.Vector),
				Payload: maps.Clone(p.Payload),
			})
		}
	}
	s.mu.RUnlock()
	SortHits(hits)
	return hits[:min(limit, MostHits, len(hits))], nil
}
