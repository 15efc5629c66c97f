package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools/mcp"
)

// send stores a row, and facts in the same commit, and has it delivered. The row has a key, so that it can be stored
// again.
func (s *service) send(ctx context.Context, row bot.Row, facts ...bot.Fact) {
	if err := s.core.keeper().Keep(ctx, &bot.Change{Send: []bot.Row{row}, Facts: facts}); err != nil {
		s.log.Error().Err(err).Str("chat", row.Place.Chat).Msg("message not stored")
		return
	}
	s.outbox.Wake(row.Place)
}

// serverCounts are the MCP servers by state, for the metrics.
func (c *Core) serverCounts() map[string]float64 {
	counts := map[string]float64{}
	for state, n := range c.servers.Counts() {
		counts[string(state)] = float64(n)
	}
	return counts
}

// connected says for /status how many servers there are.
func (c *Core) connected() texts.Connected {
	counts := c.servers.Counts()
	all := 0
	for _, n := range counts {
		all += n
	}
	return texts.Connected{Connected: counts[mcp.Connected], All: all}
}
