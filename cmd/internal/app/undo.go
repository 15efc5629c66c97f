package app

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/undo"
)

// openUndo builds what keeps the files that calls change. At the terminal, a person works in the same directory and has
// no buttons, so nothing is kept.
func (c *Core) openUndo() {
	dir, disk := filepath.Join(c.dir, layout.Undo), c.dir
	if c.shared() && c.cfg.Workspaces.Dir != "" {
		dir, disk = filepath.Join(c.opts.Layout().Common(), layout.Undo), c.workspaceRoot()
	}
	c.undo = undo.New(undo.Options{
		Dir: dir, Own: c.dirs().Open, Now: c.now, Log: c.log.With().Str("component", "undo").Logger(),
		Find: func(call *tools.Call) (tools.Tool, bool) { return call.Tools.Over(c.registry).Lookup(call.Def.Name) },
		Workspace: func(o tools.Origin) string {
			if own(o.Channel) {
				return ""
			}
			return c.undoOf(o.Workspace, bot.SessionKey(o.Session))
		},
		Live: func(o tools.Origin) bool { return background{c}.any(o.Session) },
		Room: func(ctx context.Context, want int64) int64 {
			room, _ := c.kit.disk.Room(ctx, disk, want) // the error is for those who want more
			return min(room, want)
		},
	})
}

// undoOf returns under which name the changes of a session are kept: that of its workspace.
func (c *Core) undoOf(workspace string, session bot.SessionKey) string {
	return bot.WorkspaceID(cmp.Or(workspace, c.dirs().ID(session)))
}
