package cache

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The bounds of one scope, in every Store: the oldest entries go first.
const (
	MaxEntries = 512
	MaxBytes   = 8 << 20 // of all values together
)

// maxScopes bounds Memory as a whole; beyond it any scope is forgotten.
const maxScopes = 1024

// Memory is a Store in the process: for a command that runs once, and for tests. Safe for concurrent use.
type Memory struct {
	now func() time.Time

	mu     sync.Mutex
	last   int64 // generation that was given out last
	scopes map[string]*scope
}

type scope struct {
	generation string
	entries    map[string]entry
	order      []string // keys, the oldest first
	bytes      int
}

type entry struct {
	value []byte
	until time.Time
}

// NewMemory makes an empty store; now is the clock, nil = time.Now.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, scopes: map[string]*scope{}}
}

// scope finds or makes a scope. Called with mu held.
func (m *Memory) scope(name string) *scope {
	s := m.scopes[name]
	if s != nil {
		return s
	}
	for other := range m.scopes {
		if len(m.scopes) < maxScopes {
			break
		}
		delete(m.scopes, other)
	}
	m.last++
	s = &scope{generation: strconv.FormatInt(m.last, 10), entries: map[string]entry{}}
	m.scopes[name] = s
	return s
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, name, key string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.scope(name)
	e, ok := s.entries[key]
	switch {
	case !ok:
		return Entry{Generation: s.generation}, nil
	case !m.now().Before(e.until):
		s.remove(key)
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
	s.remove(key)
	s.entries[key] = entry{value: append([]byte{}, e.Value...), until: m.now().Add(ttl)}
	s.order = append(s.order, key)
	s.bytes += len(e.Value)
	for len(s.order) > MaxEntries || s.bytes > MaxBytes {
		s.remove(s.order[0])
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
	delete(m.scopes, name) // the next generation is a new one
	return nil
}

// remove takes an entry out, if it is there.
func (s *scope) remove(key string) {
	e, ok := s.entries[key]
	if !ok {
		return
	}
	delete(s.entries, key)
	s.bytes -= len(e.value)
	if i := slices.Index(s.order, key); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
}
