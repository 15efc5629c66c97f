// Package moves knows which groups got new ids, and updates what is not in the store accordingly: the names of sessions
// that are still used after a move, and the directories of conversations.
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

// Map knows which groups got new ids. Things that outlive a move and are not rows of the store are named by the first
// id of their chat (workspaces), or use the Map to find their session (background runs). The zero value knows no moves.
// It is safe for concurrent use.
type Map struct {
	mu   sync.Mutex
	old  map[string]string // by channel and new id: the previous id
	next map[string]string // by channel and old id: the next id
}

// Load reads the moves from the store. Until it returns, the earlier ones remain in use.
func (m *Map) Load(ctx context.Context, store bot.Facts, now time.Time) error {
	_, err := m.refreshMoves(ctx, store, now)
	return err
}

// refreshMoves is like Load, and reports whether anything is new: another process may have moved a group.
func (m *Map) refreshMoves(ctx context.Context, store bot.Facts, now time.Time) (changed bool, err error) {
	facts, err := store.FactsOf(ctx, bot.MovedBucket, "", now)
	if err != nil {
		return false, fmt.Errorf("read the moves of groups: %w", err)
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

// followMoves returns the names of a session, beginning with this one, along the ids of its chat.
func (m *Map) followMoves(session bot.SessionKey, ids func(*Map) map[string]string) []bot.SessionKey {
	list := []bot.SessionKey{session}
	if place, ok := session.Place(); ok && !place.Ordinary() {
		return list // only chats that the bot is in move
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for range ids(m) { // limited, although no messenger produces ids that form a circle
		id, ok := ids(m)[session.Channel()+"/"+session.Chat()]
		if !ok {
			break
		}
		session = session.WithChat(id)
		list = append(list, session)
	}
	return list
}

// First returns the key that a session had under the first id of its chat.
func (m *Map) First(session bot.SessionKey) bot.SessionKey {
	list := m.followMoves(session, func(m *Map) map[string]string { return m.old })
	return list[len(list)-1]
}

// Current returns the current key of a session.
func (m *Map) Current(session bot.SessionKey) bot.SessionKey {
	list := m.followMoves(session, func(m *Map) map[string]string { return m.next })
	return list[len(list)-1]
}

// Names returns all keys that a session has had, the current one first.
func (m *Map) Names(session bot.SessionKey) []bot.SessionKey {
	return m.followMoves(m.Current(session), func(m *Map) map[string]string { return m.old })
}

// movedIDs lists the chats that have a new id, as CHANNEL/NEW ID.
func (m *Map) movedIDs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.old))
}

// Watched is the store as the loops use it: after a Change that moves a group, it updates what is not in the store.
type Watched struct {
	bot.Store
	// Moved is called after every Change with a Move, also after one that failed.
	Moved func(ctx context.Context)
}

// Apply implements bot.Writer.
func (w Watched) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	applied, err := w.Store.Apply(ctx, change)
	if change.Move != nil { // the commit may have succeeded although its reply was lost, so the store is asked
		w.Moved(ctx)
	}
	return applied, err
}
