package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/tools"
)

// newDesk builds what answers /mcp.
func (s *service) newDesk(broker servers.Broker) *servers.Desk {
	c := s.core
	return servers.New(servers.Deps{
		Setup: servers.Setup{
			Channel: s.ch.name, Bot: s.ch.bot, Owner: c.owner, Shared: c.shared(), Lives: c.lives, Nobody: s.ch.nobody, Programs: c.cfg.MCP.ChatCommands, AllowedCommands: c.cfg.MCP.AllowedCommands,
			Patience: c.cfg.Telegram.ApprovalTimeout,
		},
		Client: c.servers, SignIns: c.signIns, Store: c.stores.Bot, Keeper: c.keeper(), Moves: c.moves, News: c.news, Broker: broker, Audit: records{c},
		Words: c.words(), Shares: c.catalog.Shares, EndGrants: c.endGrants, Send: s.send, Wake: func(place bot.Place) { s.outbox.Wake(place) }, Now: c.now, Log: c.log,
	})
}

// records is the audit log as /mcp sees it. Without a log nothing is recorded.
type records struct{ core *Core }

// Record implements servers.Audit.
func (r records) Record(call *tools.Call, err error) {
	if r.core.audit == nil {
		return
	}
	var res *tools.Result
	if err == nil {
		res = &tools.Result{}
	}
	r.core.audit.Record(call, res, err)
}

// Due implements servers.Audit.
func (r records) Due(call *tools.Call, err error) []bot.Fact { return r.core.due(call, err) }

// Settle implements servers.Audit.
func (r records) Settle(ctx context.Context) { r.core.settleAudit(ctx) }
