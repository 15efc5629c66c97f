package knn

import (
	"cmp"
	"context"
	"math"
	"slices"
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
		m.hashes[i], m.units[i] = p.Hash, unit(p.Vector)
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
	query := unit(vector)
	m.mu.RLock()
	hits := make([]Hit, 0, len(m.keys))
	for i, u := range m.units {
		if len(u) == len(vector) {
			hits = append(hits, Hit{m.keys[i], dot(query, u)})
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(hits, func(a, b Hit) int {
		if order := cmp.Compare(b.Score, a.Score); order != 0 {
			return order
		}
		return cmp.Compare(a.Key, b.Key)
	})
	return hits[:min(limit, len(hits))], nil
}

// unit returns a copy of length 1, or zeros if the vector has no direction.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	u := make([]float32, len(v))
	if length := math.Sqrt(sum); length > 0 && !math.IsInf(length, 0) && !math.IsNaN(length) {
		for i, x := range v {
			u[i] = float32(float64(x) / length)
		}
	}
	return u
}

// dot adds in eight lanes, which the processor can compute in parallel. Both vectors have the same length.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + (s4 + s5 + s6 + s7)
}
