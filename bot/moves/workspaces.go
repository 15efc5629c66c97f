package moves

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// Workspaces are the directories of conversations below a root. A group that gets a new id keeps its directory.
type Workspaces struct {
	Root string
	Map  *Map
	// Own are the directories of channels that work in a place of their own, by channel.
	Own map[string]string
	// Lanes returns the workspace of a session; Join needs it.
	Lanes Lanes
	// Tell informs the model of a session about its files at its next turn.
	Tell func(ctx context.Context, session bot.SessionKey, text string) error
	Log  zerolog.Logger
}

// Lanes reads the lane of a session (bot.Store).
type Lanes interface {
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
}

// ID returns the id of the workspace of a session whose lane has none yet. It is derived from the first key of the
// session.
func (w *Workspaces) ID(session bot.SessionKey) string {
	return bot.WorkspaceID(string(w.Map.First(session)))
}

// Dir returns the directory of a workspace. It need not exist.
func (w *Workspaces) Dir(id string) string { return filepath.Join(w.Root, bot.WorkspaceID(id)) }

// Open returns the working directory of a conversation and creates it if necessary: the directory of its channel if
// that has one, otherwise the workspace that the origin names.
func (w *Workspaces) Open(o tools.Origin) (string, error) {
	if dir, ok := w.Own[o.Channel]; ok {
		return dir, nil
	}
	dir := w.Dir(cmp.Or(o.Workspace, w.ID(bot.SessionKey(o.Session))))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	return dir, nil
}

// Join moves the files that conversations wrote under the new id of a group to those written under the old one. Each
// directory moves in one step, so that it is complete in one of the two places whenever the process ends.
func (w *Workspaces) Join(ctx context.Context) {
	entries, err := os.ReadDir(w.Root)
	if err != nil {
		return // no conversation has files yet
	}
	for _, key := range w.Map.movedIDs() {
		channel, id, _ := strings.Cut(key, "/")
		for _, e := range entries {
			if session, ok := movedSession(e.Name(), channel, id); ok && e.IsDir() {
				if err := w.joinOne(ctx, session, e.Name(), "group"+id); err != nil {
					w.Log.Error().Err(err).Str("directory", e.Name()).
						Msg("files of a group with a new id remain in a directory of their own")
				}
			}
		}
	}
}

// movedSession parses the name of a directory as the key of a session of a chat. A key contains "/" only between its
// parts.
func movedSession(name, channel, chat string) (session bot.SessionKey, ok bool) {
	rest, ok := strings.CutPrefix(name, bot.WorkspaceID(channel)+"_")
	session = bot.SessionKey(channel + "/" + strings.ReplaceAll(rest, "_", "/"))
	return session, ok && session.Valid() && session.Chat() == chat
}

// joinOne moves a directory to the workspace of its session, unless it already is that workspace: a session that began
// after the move may own it.
func (w *Workspaces) joinOne(ctx context.Context, session bot.SessionKey, from, name string) error {
	lane, err := w.Lanes.Lane(ctx, w.Map.Current(session))
	if err != nil {
		return err
	}
	id := cmp.Or(lane.Workspace, w.ID(session))
	if id == from {
		return nil
	}
	return w.joinDirectory(ctx, session, from, id, name)
}

// joinDirectory moves a directory to where its session works: as the workspace of that
// id, or into a subdirectory of it.
func (w *Workspaces) joinDirectory(ctx context.Context, session bot.SessionKey, from, id, name string) error {
	source, target := filepath.Join(w.Root, from), w.Dir(id)
	if os.Remove(source) == nil {
		return nil // it was empty
	}
	_ = os.Remove(target) // succeeds only if it is empty
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
	text := fmt.Sprintf("[The files written under the new id of this group are now in the directory %s/; "+
		"the earlier ones are where they were.]", free)
	if err := w.Tell(ctx, w.Map.Current(session), text); err != nil {
		return fmt.Errorf("moved to %s, but the model is not told: %w", free, err)
	}
	return nil
}
