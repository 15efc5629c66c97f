package app

import (
	"context"

	"github.com/zephbot/zephbot/bot/acp"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/policy/source"
)

// relocator follows groups that get new ids; forget drops their counters, nil = there are none yet.
func (c *Core) relocator(forget func()) *moves.Relocator {
	return &moves.Relocator{
		Map:    c.moves,
		Store:  c.stores.Bot,
		Runs:   c.kit.runner,
		News:   c.news,
		Dirs:   c.dirs(),
		Forget: forget,
		Now:    c.now,
		Log:    c.log,
	}
}

// dirs are the directories of conversations. At the terminal that is the process's own, elsewhere one below
// workspaces.dir, which a group keeps when it gets a new id.
func (c *Core) dirs() *moves.Workspaces {
	return &moves.Workspaces{
		Root:  c.workspaceRoot(),
		Map:   c.moves,
		Own:   map[string]string{terminal.Name: c.opts.WorkDir, acp.Name: c.opts.WorkDir},
		Lanes: c.stores.Bot,
		Tell:  c.news.TellLater,
		Log:   c.log,
	}
}

// openNews builds what models are told at their next turn.
func (c *Core) openNews() {
	var look func(context.Context) error
	if c.shared() {
		look = c.meet
	}
	c.news = news.New(news.Deps{
		Store:   c.stores.Bot,
		Keeper:  c.keeper(),
		Moves:   c.moves,
		Owner:   c.owner,
		Lives:   c.living.Lives,
		Look:    look,
		Running: c.kit.runner.Running,
		Now:     c.now,
		Log:     c.log,
		Wrap:    func(from source.Source, text string) (string, []string) { return c.stages.marker.Wrap(from, text) },
	})
}
