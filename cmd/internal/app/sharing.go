package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// shared reports whether other processes use the same database. The simulator and the terminal have databases of their
// own.
func (c *Core) shared() bool { return c.cfg.Workspaces.Shared && c.opts.Home == "" }

// pacer returns the pacer of a channel, shared with the other processes if there are any. run is nil if nothing has to
// run for it.
func (c *Core) pacer(ch channel) (pacer bot.Pacer, run func(context.Context) error, err error) {
	o := deliver.PacerOptions{Now: c.now, Throttled: c.throttled}
	if !c.shared() {
		return deliver.NewPacer(ch.limits, o), nil, nil
	}
	budget, err := c.redis.Budget(ch.bot)
	if err != nil {
		return nil, nil, err
	}
	p := deliver.NewSharedPacer(budget, ch.limits, deliver.SharedOptions{
		PacerOptions: o, Living: c.living.Count, Log: c.log.With().Str("component", "pacer").Logger(),
	})
	return p, p.Run, nil
}
