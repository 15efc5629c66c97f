package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/news"
)

// relocate brings everything that is not in the store in line with the groups' ids. It changes nothing the second time,
// and runs at every start too.
func (c *Core) relocate(ctx context.Context) {
	if err := c.moves.Load(ctx, c.stores.Bot, c.now()); err != nil {
		c.log.Error().Err(err).Msg("a group's new id is heeded at the next start only")
		return
	}
	c.renameRuns()
	c.news.Reload()
	c.dirs().Join(ctx)
}

// renameRuns has background commands belong to the sessions of groups as these are called now.
func (c *Core) renameRuns() {
	c.kit.runner.Rename(func(session string) string { return string(c.moves.Current(bot.SessionKey(session))) })
}

// dirs are the directories of conversations.
func (c *Core) dirs() *moves.Workspaces {
	return &moves.Workspaces{Root: c.workspaceRoot(), Map: c.moves, Lanes: c.stores.Bot, Tell: c.news.TellLater, Log: c.log}
}

// openNews builds what models are told at their next turn.
func (c *Core) openNews() {
	c.news = news.New(news.Deps{
		Store: c.stores.Bot, Keeper: c.keeper(), Moves: c.moves, Owner: c.owner, Lives: c.lives, Running: c.kit.runner.Running, Now: c.now, Log: c.log,
		Wrap: func(source, text string) (string, []string) { return c.stages.marker.Wrap(source, text) },
	})
}
