package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Reload has the next Follow read which scopes have memories, because a group has a new id.
func (s *Store) Reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = false
}

// Follow finds the scopes in which other processes have had something remembered. The first one, and one after a long
// pause, reads all scopes that have memories.
func (s *Store) Follow(ctx context.Context) error {
	now := s.deps.Now()
	s.mu.Lock()
	all := !s.loaded || now.Sub(s.looked) > changesFor/2
	s.loaded = true
	s.mu.Unlock()
	from, key := changes, func(f *bot.Fact) string { return f.Value }
	if all {
		from, key = scopes, func(f *bot.Fact) string { return f.Key }
	} else if !s.deps.Shared {
		return nil
	}
	list, err := s.deps.Store.FactsOf(ctx, from, "", now)
	if err != nil {
		s.Reload()
		return fmt.Errorf("read who has something remembered: %w", err)
	}
	for i := range list {
		s.noteScope(key(&list[i]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = now
	return nil
}

// noteScope records that a scope may have memories. It is called after they were stored.
func (s *Store) noteScope(key string) {
	s.cache.dropScope(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.may[key] = s.n
}

// Has reports whether there may be memories for a message. It reads nothing from the store.
func (s *Store) Has(msg *bot.Message) bool {
	s.mu.Lock()
	none := len(s.may) == 0
	s.mu.Unlock()
	if none {
		return false
	}
	scope, ok := scopeOf(msg)
	if !ok {
		return false
	}
	_, may := s.isNoted(scope)
	return may
}

func (s *Store) isNoted(scope Scope) (n int, may bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, may = s.may[scope.key]
	return n, may
}

// noteEmpty records that a scope has no memories, unless there are some since it was noted.
func (s *Store) noteEmpty(scope Scope, noted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.may[scope.key] == noted {
		delete(s.may, scope.key)
	}
}

// semanticWithin limits how long a ranking by meaning may take; then words decide.
const semanticWithin = 3 * time.Second
