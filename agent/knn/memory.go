package knn

import (
	"context"
	"sync"
)

// Memory is an in-memory Index with exact search. Safe for concurrent use.
type Memory struct {
	mu     sync.RWMutex
	points map[string]int // key → index into the slices below
	keys   []string
	hashes []string
	units  [][]float32 // vectors of length 1; nil for one without direction
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{points: map[string]int{}} }

// Hashes implements Index.
func (m *Memory) Hashes(context.Context) (map[string]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make(map[string]string, len(m.keys))
	for i, key := range m.keys {
		all[key] = m.hashes[i]
	}
	return all, nil
}

// Upsert implements Index.
func (m *Memory) Upsert(_ context.Context, points []Point) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range points {
		i, ok := m.points[p.Key]
		if !ok {
			i = len(m.keys)
			m.points[p.Key] = i
			m.keys, m.hashes, m.units = append(m.keys, p.Key), append(m.hashes, ""), append(m.units, nil)
		}
		m.hashes[i], m.units[i] = p.Hash, Unit(p.Vector)
	}
	return nil
}

// Delete implements Index.
func (m *Memory) Delete(_ context.Context, keys []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		i, ok := m.points[key]
		if !ok {
			continue
		}
		last := len(m.keys) - 1
		m.keys[i], m.hashes[i], m.units[i] = m.keys[last], m.hashes[last], m.units[last]
		m.points[m.keys[i]] = i
		m.units[last] = nil
		m.keys, m.hashes, m.units = m.keys[:last], m.hashes[:last], m.units[:last]
		delete(m.points, key)
	}
	return nil
}

// Search implements Index. A vector without direction (all zero, or not finite) is similar to nothing: its score is 0.
func (m *Memory) Search(_ context.Context, vector []float32, limit int) ([]Hit, error) {
	if limit <= 0 || len(vector) == 0 {
		return nil, nil
	}
	query := Unit(vector)
	m.mu.RLock()
	hits := make([]Hit, 0, len(m.keys))
	for i, u := range m.units {
		if len(u) == len(vector) {
			hits = append(hits, Hit{Key: m.keys[i], Score: Dot(query, u)})
		}
	}
	m.mu.RUnlock()
	SortHits(hits)
	return hits[:min(limit, len(hits))], nil
}
