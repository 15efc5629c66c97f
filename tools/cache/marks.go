package cache

import (
	"sync"
	"time"
)

// marks remembers the scopes whose drop did not reach the store, so that a store that comes back does not answer with
// what is stale. Its zero value is ready. A mark outlives everything that the store could hold by then.
type marks struct {
	mu   sync.Mutex
	last int64
	list map[string]mark
}

type mark struct {
	version int64 // counts the failed drops of all scopes, from 1
	until   time.Time
}

const (
	markFor   = MaxTTL + time.Hour // a reader that was under way may still store for MaxTTL
	sweepFrom = 1024               // marks at which those that are over are taken out
)

// version is the mark of a scope; 0 = none.
func (m *marks) version(where string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list[where].version
}

func (m *marks) set(where string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		m.list = map[string]mark{}
	}
	if len(m.list) >= sweepFrom {
		for name, k := range m.list {
			if !now.Before(k.until) {
				delete(m.list, name)
			}
		}
	}
	m.last++
	m.list[where] = mark{version: m.last, until: now.Add(markFor)}
}

// clear takes a mark away, unless another drop has failed since it had the given version.
func (m *marks) clear(where string, version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list[where].version == version {
		delete(m.list, where)
	}
}
