package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/catalog"
)

// What a cache holds at most. A memory with its words takes about 2 KiB.
const (
	cachedScopes   = 256
	cachedMemories = 4000
)

// read is what was read of a scope, in the form in which it is ranked. Immutable.
type read struct {
	revision string
	list     []Memory // newest first
	texts    *catalog.Texts
	used     int
}

// cache keeps scopes as they were read last, so that a turn of somebody with many memories does not wait until they are
// read and split into words. What is in it counts only while the scope has the same revision. Safe for concurrent use;
// the zero value is empty.
type cache struct {
	mu     sync.Mutex
	scopes map[string]*read
	n      int // memories in all
	clock  int
}

// getScope returns a scope as it was read at a revision; nil = it is not known.
func (c *cache) getScope(key, revision string) *read {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.scopes[key]
	if r == nil || r.revision != revision {
		return nil
	}
	c.clock++
	r.used = c.clock
	return r
}

// putScope keeps a scope, in place of those that were used least lately.
func (c *cache) putScope(key string, r *read) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeScope(key)
	if r.revision == "" || len(r.list) > cachedMemories {
		return
	}
	for len(c.scopes) >= cachedScopes || c.n+len(r.list) > cachedMemories {
		oldest := ""
		for k, other := range c.scopes {
			if oldest == "" || other.used < c.scopes[oldest].used {
				oldest = k
			}
		}
		c.removeScope(oldest)
	}
	if c.scopes == nil {
		c.scopes = map[string]*read{}
	}
	c.clock++
	r.used = c.clock
	c.scopes[key], c.n = r, c.n+len(r.list)
}

// dropScope forgets a scope, because it has changed: nothing that was deleted stays in memory.
func (c *cache) dropScope(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeScope(key)
}

func (c *cache) removeScope(key string) {
	if r := c.scopes[key]; r != nil {
		c.n -= len(r.list)
		delete(c.scopes, key)
	}
}

// recentMemories returns the memories of a scope as they are stored now. The revision is read first: if something is
// changed before the list is read, the next call reads again.
func (s *Store) recentMemories(ctx context.Context, scope Scope) (*read, error) {
	names := s.scopeKeys(scope)
	revisions := make([]string, len(names))
	known := false
	for i, name := range names {
		var err error
		if revisions[i], err = s.deps.Store.Fact(ctx, scopes, name, s.deps.Now()); err != nil {
			return nil, fmt.Errorf("read what is remembered: %w", err)
		}
		known = known || revisions[i] != ""
	}
	revision := ""
	if known {
		revision = strings.Join(revisions, " ")
	}
	if r := s.cache.getScope(names[0], revision); r != nil {
		return r, nil
	}
	list, err := s.listMemories(ctx, scope)
	if err != nil {
		return nil, err
	}
	r := &read{revision: revision, list: list, texts: textsOf(list)}
	s.cache.putScope(names[0], r)
	return r, nil
}
