package app

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// shared reports whether other processes use the same database. The simulator and the terminal have databases of their
// own.
func (c *Core) shared() bool { return c.cfg.Workspaces.Shared && c.opts.Home == "" }

// sharing checks what several processes must have in common.
func (k *inspector) sharing() {
	if !k.c.Workspaces.Shared {
		return
	}
	const key = "workspaces.shared"
	if k.c.Database.URL == "" {
		k.wrong(key, "several processes need one database: set database.url to a PostgreSQL server, or workspaces.shared = false for one process")
	}
	if k.c.Redis.URL == "" {
		k.wrong(key, "several processes need one Redis server for quotas and send budgets: set redis.url, or workspaces.shared = false for one process")
	}
	if k.c.Workspaces.Dir == "" {
		k.wrong(key, "workspaces.dir is empty, and data_dir belongs to one process: set it to a directory on a volume that every process sees")
	}
	for i, server := range k.c.MCP.Servers {
		if server.OAuth.Enabled && server.OAuth.TokenStorage == "memory" {
			k.warn(fmt.Sprintf("mcp.servers[%d].oauth.token_storage", i), "in memory, a sign-in is known to the process that it was made in alone; set it to vault, and all have it")
		}
	}
	if k.c.Audit.Enabled && k.c.Audit.Destination != "" && k.c.Audit.Destination != "stdout" {
		k.warn("audit.destination", "every process writes a chain of its own beside this file; on a volume that not all of them see, `zephbot audit` finds only some")
	}
}

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
