package cache

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Limits of one scope, in every Store: the oldest entries are dropped first.
const (
	MaxEntries = 512
	MaxBytes   = 8 << 20 // of all values
)

// Limits of Memory as a whole. Above them, arbitrary scopes are dropped.
const (
	maxScopes = 8192
	maxTotal  = 64 << 20 // bytes of all values
)

const (
	sweepEvery = time.Minute // how often scopes that have expired are deleted
	// minimum lifetime of a scope without entries: a reader takes less time
	beginning = 10 * time.Minute
)

// Memory is a Store in this process, of limited size. A scope that was dropped is empty, never stale. It is safe for
// concurrent use.
type Memory struct {
	now func() time.Time

	mu     sync.Mutex
	last   int64 // the latest generation
	swept  time.Time
	bytes  int // of all scopes
	scopes map[string]*scope
}

type scope struct {
	generation string
	entries    map[string]entry
	order      []string // keys, oldest first
	bytes      int
	until      time.Time // when its last entry expires
}

type entry struct {
	value []byte
	until time.Time
}

// NewMemory returns an empty store. now is the clock; nil = time.Now.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, scopes: map[string]*scope{}}
}

// scope finds or creates a scope. The caller holds mu.
func (m *Memory) scope(name string, now time.Time) *scope {
	if s := m.scopes[name]; s != nil {
		return s
	}
	for other := range m.scopes {
		if len(m.scopes) < maxScopes {
			break
		}
		m.forget(other)
	}
	m.last++
	s := &scope{generation: strconv.FormatInt(m.last, 10), until: now.Add(beginning)}
	m.scopes[name] = s
	return s
}

// forget deletes a scope if it exists. The caller holds mu.
func (m *Memory) forget(name string) {
	if s := m.scopes[name]; s != nil {
		m.bytes -= s.bytes
		delete(m.scopes, name)
	}
}

// sweep deletes expired scopes. The caller holds mu.
func (m *Memory) sweep(now time.Time) {
	if now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	for name, s := range m.scopes {
		if now.After(s.until) {
			m.forget(name)
		}
	}
}

// remove deletes an entry if it exists. The caller holds mu.
func (m *Memory) remove(s *scope, key string) {
	e, ok := s.entries[key]
	if !ok {
		return
	}
	delete(s.entries, key)
	s.bytes -= len(e.value)
	m.bytes -= len(e.value)
	if i := slices.Index(s.order, key); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, name, key string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sweep(now)
	s := m.scope(name, now)
	e, ok := s.entries[key]
	switch {
	case !ok:
		return Entry{Generation: s.generation}, nil
	case !now.Before(e.until):
		m.remove(s, key)
		return Entry{Generation: s.generation}, nil
	default:
		return Entry{Value: bytes.Clone(e.value), Generation: s.generation}, nil
	}
}

// Set implements Store.
func (m *Memory) Set(ctx context.Context, name, key string, e Entry, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.scopes[name]
	if s == nil || s.generation != e.Generation || len(e.Value) > MaxBytes {
		return nil
	}
	m.remove(s, key)
	if s.entries == nil {
		s.entries = map[string]entry{}
	}
	until := m.now().Add(min(ttl, MaxTTL))
	s.entries[key] = entry{value: append([]byte{}, e.Value...), until: until}
	s.order = append(s.order, key)
	s.bytes += len(e.Value)
	m.bytes += len(e.Value)
	if until.After(s.until) {
		s.until = until
	}
	for len(s.order) > MaxEntries || s.bytes > MaxBytes {
		m.remove(s, s.order[0])
	}
	for other, o := range m.scopes {
		if m.bytes <= maxTotal {
			break
		}
		if other != name && o.bytes > 0 {
			m.forget(other)
		}
	}
	return nil
}

// Drop implements Store.
func (m *Memory) Drop(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(name) // the next scope has a new generation
	return nil
}
