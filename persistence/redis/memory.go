package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/tools/cache"
)

// sweepEvery is how often expired keys are deleted. Until then they are invisible.
const sweepEvery = time.Hour

var errClosed = errors.New("the counters are closed")

// memory is the in-process engine. It has no protocol and no port, so that nothing that runs in the shell tool can
// reach it. It behaves like the scripts in server.go. Its size is bounded by the charges of three days and by the
// limits of cache.Memory.
type memory struct {
	cache *cache.Memory

	mu     sync.Mutex
	closed bool
	swept  time.Time
	values map[string]counted
	ids    map[string]time.Time // when each taken id is forgotten
	aside  map[string]asides    // of each counter
}

// counted is a counter. An expired one counts as zero.
type counted struct {
	n     int64
	until time.Time
}

func newMemory() *memory {
	return &memory{
		cache: cache.NewMemory(nil), swept: time.Now(),
		values: map[string]counted{}, ids: map[string]time.Time{}, aside: map[string]asides{},
	}
}

// beginOp makes the checks common to all operations and returns the current time. m.mu must be held.
func (m *memory) beginOp(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	if m.closed {
		return time.Time{}, errClosed
	}
	now := time.Now()
	if now.Sub(m.swept) >= sweepEvery {
		m.sweepExpired(now)
	}
	return now, nil
}

// sweepExpired deletes expired keys. m.mu must be held.
func (m *memory) sweepExpired(now time.Time) {
	m.swept = now
	for key, v := range m.values {
		if !now.Before(v.until) {
			delete(m.values, key)
		}
	}
	for id, until := range m.ids {
		if !now.Before(until) {
			delete(m.ids, id)
		}
	}
	for key, a := range m.aside {
		if !now.Before(a.until) {
			delete(m.aside, key)
		}
	}
}

// valueOf returns the current value of a counter. m.mu must be held.
func (m *memory) valueOf(key string, now time.Time) int64 {
	if v, ok := m.values[key]; ok && now.Before(v.until) {
		return v.n
	}
	return 0
}

// setCounter writes a counter. One that has expired already is deleted, as by EXPIREAT. m.mu must be held.
func (m *memory) setCounter(key string, v counted, now time.Time) {
	if !now.Before(v.until) {
		delete(m.values, key)
		return
	}
	m.values[key] = v
}

// Take implements quota.Counter.
func (m *memory) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.beginOp(ctx)
	if err != nil {
		return nil, -1, fmt.Errorf("take %s: %w", id, err)
	}
	counts, denied := make([]int64, len(takes)), -1
	for i, t := range takes {
		counts[i] = m.valueOf(t.Key, now)
		if denied < 0 && t.Limit > 0 && counts[i]+t.N > t.Limit {
			denied = i
		}
	}
	switch {
	case now.Before(m.ids[id]):
		return counts, -1, nil
	case denied >= 0:
		return counts, denied, nil
	}
	for i, t := range takes {
		// read again: two takes can name one counter
		counts[i] = m.valueOf(t.Key, now) + t.N
		// the resolution of a server
		m.setCounter(t.Key, counted{n: counts[i], until: expiryOf(t, expire).Truncate(time.Second)}, now)
	}
	m.ids[id] = expire.Truncate(time.Second)
	return counts, -1, nil
}

// Return implements quota.Counter.
func (m *memory) Return(ctx context.Context, id string, takes []quota.Take) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.beginOp(ctx)
	if err != nil {
		return fmt.Errorf("return %s: %w", id, err)
	}
	if !now.Before(m.ids[id]) {
		return nil
	}
	delete(m.ids, id)
	for _, t := range takes {
		if v, ok := m.values[t.Key]; ok && now.Before(v.until) {
			v.n = max(0, v.n-t.N)
			m.values[t.Key] = v
		}
	}
	return nil
}

// Read implements quota.Counter.
func (m *memory) Read(ctx context.Context, names []string) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.beginOp(ctx)
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	out := make([]int64, len(names))
	for i, name := range names {
		out[i] = m.valueOf(name, now)
	}
	return out, nil
}

// Restore implements quota.Counter.
func (m *memory) Restore(ctx context.Context, key string, n int64, expire time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.beginOp(ctx)
	if err != nil {
		return fmt.Errorf("restore %s: %w", key, err)
	}
	if m.valueOf(key, now) < n {
		m.setCounter(key, counted{n: n, until: expire.Truncate(time.Second)}, now)
	}
	return nil
}

// Ping implements engine.
func (m *memory) Ping(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.beginOp(ctx)
	return err
}

// Health implements engine.
func (m *memory) Health() Health { return Health{State: Fine} }

// Renewals implements quota.Counter: there is only one engine per process.
func (m *memory) Renewals() int64 { return 0 }

// Cache implements engine.
func (m *memory) Cache() cache.Store { return m.cache }

// Close implements engine. Later operations fail, so that quotas deny.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.values, m.ids, m.aside = true, nil, nil, nil
	return nil
}
