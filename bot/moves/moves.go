// Package moves knows which groups got new ids, and brings in line with them what is not in the store: names of
// sessions that outlive a move, and the directories of conversations.
package moves

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Map knows which groups got new ids. What outlives a move and is not a row of the store is named by the first id of
// its chat (workspaces), or finds its session by it (background runs). The zero value knows none. Safe for concurrent
// use.
type Map struct {
	mu   sync.Mutex
	old  map[string]string // by channel and new id: the id before
	next map[string]string // by channel and old id: the id after
}

// Load reads them from the store. What it read before counts until then.
func (m *Map) Load(ctx context.Context, store bot.Facts, now time.Time) error {
	_, err := m.Refresh(ctx, store, now)
	return err
}

// Refresh is Load, and says whether anything is new: another process may have moved a group.
func (m *Map) Refresh(ctx context.Context, store bot.Facts, now time.Time) (changed bool, err error) {
	facts, err := store.FactsOf(ctx, bot.MovedBucket, "", now)
	if err != nil {
		return false, fmt.Errorf("read which groups got a new id: %w", err)
	}
	old, next := map[string]string{}, map[string]string{}
	for _, f := range facts {
		channel, id, ok := strings.Cut(f.Key, "/")
		if ok {
			old[f.Key], next[channel+"/"+f.Value] = f.Value, id
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	changed = !maps.Equal(m.old, old)
	m.old, m.next = old, next
	return changed, nil
}

// follow gives the names of a session from this one on along the ids of its chat.
func (m *Map) follow(session bot.SessionKey, ids func(*Map) map[string]string) []bot.SessionKey {
	list := []bot.SessionKey{session}
	m.mu.Lock()
	defer m.mu.Unlock()
	for range ids(m) { // bounded: ids that lead in a circle come from no messenger
		id, ok := ids(m)[session.Channel()+"/"+session.Chat()]
		if !ok {
			break
		}
		session = session.WithChat(id)
		list = append(list, session)
	}
	return list
}

// First is the name of a session as long as its chat had its first id.
func (m *Map) First(session bot.SessionKey) bot.SessionKey {
	list := m.follow(session, func(m *Map) map[string]string { return m.old })
	return list[len(list)-1]
}

// Current is the name of a session now.
func (m *Map) Current(session bot.SessionKey) bot.SessionKey {
	list := m.follow(session, func(m *Map) map[string]string { return m.next })
	return list[len(list)-1]
}

// Names are all names of a session that there were, its current one first.
func (m *Map) Names(session bot.SessionKey) []bot.SessionKey {
	return m.follow(m.Current(session), func(m *Map) map[string]string { return m.old })
}

// ids lists the chats that have a new id, as CHANNEL/NEW ID.
func (m *Map) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.old))
}

// Watched is the store as the loops use it: a Change that moves a group is followed by what is not in the store.
type Watched struct {
	bot.Store
	// Moved is called after every Change with a Move, also after one that failed.
	Moved func(ctx context.Context)
}

// Apply implements bot.Writer.
func (w Watched) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	applied, err := w.Store.Apply(ctx, change)
	if change.Move != nil { // its answer may have got lost: the store is asked
		w.Moved(ctx)
	}
	return applied, err
}
