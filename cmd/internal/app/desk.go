package app

import (
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools/mcp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/servers"
)

// newServerHandler builds what handles /mcp.
func (s *service) newServerHandler(broker servers.Broker) *servers.Handler {
	c := s.core
	return servers.New(servers.Deps{
		Setup: servers.Setup{
			Channel:         s.ch.name,
			Bot:             s.ch.bot,
			Owner:           c.owner,
			Shared:          c.shared(),
			Lives:           c.living.Lives,
			Nobody:          s.ch.nobody,
			Programs:        c.cfg.MCP.ChatCommands,
			AllowedCommands: c.cfg.MCP.AllowedCommands,
			Patience:        c.cfg.Telegram.ApprovalTimeout,
		},
		Client:    c.servers,
		SignIns:   c.signIns,
		Store:     c.stores.Bot,
		Keeper:    c.keeper(),
		Moves:     c.moves,
		News:      c.news,
		Broker:    broker,
		Audit:     c.records,
		Words:     c.words(),
		Shares:    c.catalog.Shares,
		EndGrants: c.book.EndServer,
		Send:      s.mailer().Send,
		Wake:      func(place bot.Place) { s.outbox.Wake(place) },
		Now:       c.now,
		Log:       c.log,
	})
}

// mailer sends what no turn says.
func (s *service) mailer() deliver.Mailer {
	return deliver.Mailer{Keeper: s.core.keeper(), Wake: func(place bot.Place) { s.outbox.Wake(place) }, Log: s.log}
}

// serverCounts returns the number of MCP servers by state, for the metrics.
func (c *Core) serverCounts() map[string]float64 {
	counts := map[string]float64{}
	for state, n := range c.servers.Counts() {
		counts[string(state)] = float64(n)
	}
	return counts
}

// connected returns how many servers there are, for /status.
func (c *Core) connected() texts.Connected {
	counts := c.servers.Counts()
	all := 0
	for _, n := range counts {
		all += n
	}
	return texts.Connected{Connected: counts[mcp.Connected], All: all}
}
