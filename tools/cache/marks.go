package cache

import (
	"sync"
	"time"
)

// marks records the scopes whose drop did not reach the store, so that no stale values are used when the store works
// again. Its zero value is ready to use. A mark lasts longer than anything that the store could contain.
type marks struct {
	mu   sync.Mutex
	last int64
	list map[string]mark
}

type mark struct {
	version int64 // number of failed drops in all scopes
	until   time.Time
}

const (
	markFor   = MaxTTL + time.Hour // a reader in progress may still store something for MaxTTL
	sweepFrom = 1024               // number of marks from which expired ones are removed
)

// version returns the mark of a scope; 0 = none.
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

// clear removes a mark, unless another drop has failed since the given version.
func (m *marks) clear(where string, version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list[where].version == version {
		delete(m.list, where)
	}
}
