package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/bot"
)

// moves knows which groups got new ids. What outlives a move and is not a row of the store is named by the first id of its chat (workspaces), or finds its
// session by it (background runs).
type moves struct {
	mu   sync.Mutex
	old  map[string]string // by channel and new id: the id before
	next map[string]string // by channel and old id: the id after
}

// load reads them from the store.
func (m *moves) load(ctx context.Context, c *Core) error {
	facts, err := c.stores.Bot.FactsOf(ctx, bot.MovedBucket, "", c.now())
	if err != nil {
		return fmt.Errorf("read which groups got a new id: %w", err)
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
	m.old, m.next = old, next
	return nil
}

// follow gives the names of a session from this one on along the ids of its chat.
func (m *moves) follow(session string, ids func(*moves) map[string]string) []string {
	list := []string{session}
	parts := strings.Split(session, "/") // channel, bot, surface, chat, thread, person
	if len(parts) < 4 {
		return list
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for range ids(m) { // bounded: ids that lead in a circle come from no messenger
		id, ok := ids(m)[parts[0]+"/"+parts[3]]
		if !ok {
			break
		}
		parts[3] = id
		list = append(list, strings.Join(parts, "/"))
	}
	return list
}

// first is the name of a session as long as its chat had its first id.
func (m *moves) first(session string) string {
	list := m.follow(session, func(m *moves) map[string]string { return m.old })
	return list[len(list)-1]
}

// current is the name of a session now.
func (m *moves) current(session string) string {
	list := m.follow(session, func(m *moves) map[string]string { return m.next })
	return list[len(list)-1]
}

// names are all names of a session that there were, its current one first.
func (m *moves) names(session string) []string {
	return m.follow(m.current(session), func(m *moves) map[string]string { return m.old })
}

// watched is the store as the loops use it: a Change that moves a group is followed by what is not in the store.
type watched struct {
	bot.Store
	moved func(ctx context.Context)
}

// Apply implements bot.Writer.
func (w watched) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	applied, err := w.Store.Apply(ctx, change)
	if change.Move != nil { // its answer may have got lost: the store is asked
		w.moved(ctx)
	}
	return applied, err
}

// relocate brings everything that is not in the store in line with the groups' ids. It changes nothing the second time, and runs at every start too.
func (c *Core) relocate(ctx context.Context) {
	if err := c.moves.load(ctx, c); err != nil {
		c.log.Error().Err(err).Msg("a group's new id is heeded at the next start only")
		return
	}
	c.kit.runner.Rename(c.moves.current)
	c.news.reload()
	c.joinWorkspaces(ctx)
}

// workspaceName is the directory of a session.
func workspaceName(session string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(session))
	if name == "" {
		return "none"
	}
	return name
}

// joinWorkspaces brings the files that conversations wrote under the new id of a group to those that they wrote under the old one: each directory moves in
// one step, so that it is whole in one of the two places whenever the process ends.
func (c *Core) joinWorkspaces(ctx context.Context) {
	entries, err := os.ReadDir(c.workspaceRoot())
	if err != nil {
		return // no conversation has a file yet
	}
	c.moves.mu.Lock()
	var ids []string
	for key := range c.moves.old {
		ids = append(ids, key)
	}
	c.moves.mu.Unlock()
	for _, key := range ids {
		channel, id, _ := strings.Cut(key, "/")
		for _, e := range entries {
			if session, ok := movedSession(e.Name(), channel, id); ok && e.IsDir() {
				if err := c.joinWorkspace(ctx, session, e.Name(), "group"+id); err != nil {
					c.log.Error().Err(err).Str("directory", e.Name()).Msg("files of a group with a new id stay in a directory of their own")
				}
			}
		}
	}
}

// movedSession reads the name of a directory as that of a session of a chat; names of sessions hold "/" only between their parts.
func movedSession(name, channel, chat string) (session string, ok bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 6 || parts[0] != workspaceName(channel) || parts[3] != chat {
		return "", false
	}
	parts[0] = channel
	return strings.Join(parts, "/"), true
}

// joinWorkspace moves a directory to where its session works: as the session's directory, or into that under a name.
func (c *Core) joinWorkspace(ctx context.Context, session, from, name string) error {
	source, target := filepath.Join(c.workspaceRoot(), from), filepath.Join(c.workspaceRoot(), workspaceName(c.moves.first(session)))
	if source == target {
		return nil
	}
	if os.Remove(source) == nil {
		return nil // it was empty
	}
	_ = os.Remove(target) // only where it is empty
	if os.Rename(source, target) == nil {
		return nil
	}
	free := name
	for i := 2; ; i++ {
		if _, err := os.Lstat(filepath.Join(target, free)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		free = fmt.Sprintf("%s-%d", name, i)
	}
	if err := os.Rename(source, filepath.Join(target, free)); err != nil {
		return err
	}
	text := fmt.Sprintf("[The files that were written under the new id of this group are in the directory %s/ now; those from before are where they were.]", free)
	session = c.moves.current(session)
	told := fact(newsBucket, newsKey(session, c.now(), "files"), item{Kind: otherItem, Text: text})
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	if err := c.keeper().Keep(ctx, &bot.Change{Facts: []bot.Fact{told}}); err != nil {
		return fmt.Errorf("moved to %s, which the model is not told: %w", free, err)
	}
	c.news.note(session)
	return nil
}
