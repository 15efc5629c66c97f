package moves

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// WorkspaceName is the directory of a session.
func WorkspaceName(session bot.SessionKey) string { return directory(string(session)) }

// directory is a text as the name of a directory.
func directory(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(text))
	if name == "" {
		return "none"
	}
	return name
}

// Workspaces are the directories of conversations below a root. A group that gets a new id keeps its directory.
type Workspaces struct {
	Root string
	Map  *Map
	// Tell has the model of a session told about its files at its next turn.
	Tell func(ctx context.Context, session bot.SessionKey, text string) error
	Log  zerolog.Logger
}

// Dir is the directory of a session. It need not exist.
func (w *Workspaces) Dir(session bot.SessionKey) string {
	return filepath.Join(w.Root, WorkspaceName(w.Map.First(session)))
}

// Join brings the files that conversations wrote under the new id of a group to those that they wrote under the old one: each directory moves in
// one step, so that it is whole in one of the two places whenever the process ends.
func (w *Workspaces) Join(ctx context.Context) {
	entries, err := os.ReadDir(w.Root)
	if err != nil {
		return // no conversation has a file yet
	}
	for _, key := range w.Map.ids() {
		channel, id, _ := strings.Cut(key, "/")
		for _, e := range entries {
			if session, ok := movedSession(e.Name(), channel, id); ok && e.IsDir() {
				if err := w.join(ctx, session, e.Name(), "group"+id); err != nil {
					w.Log.Error().Err(err).Str("directory", e.Name()).Msg("files of a group with a new id stay in a directory of their own")
				}
			}
		}
	}
}

// movedSession reads the name of a directory as that of a session of a chat; names of sessions hold "/" only between their parts.
func movedSession(name, channel, chat string) (session bot.SessionKey, ok bool) {
	rest, ok := strings.CutPrefix(name, directory(channel)+"_")
	session = bot.SessionKey(channel + "/" + strings.ReplaceAll(rest, "_", "/"))
	return session, ok && session.Valid() && session.Chat() == chat
}

// join moves a directory to where its session works: as the session's directory, or into that under a name.
func (w *Workspaces) join(ctx context.Context, session bot.SessionKey, from, name string) error {
	source, target := filepath.Join(w.Root, from), w.Dir(session)
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
	if err := w.Tell(ctx, w.Map.Current(session), text); err != nil {
		return fmt.Errorf("moved to %s, which the model is not told: %w", free, err)
	}
	return nil
}
