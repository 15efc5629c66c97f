package app

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// covers says whether grants would have answered a question that was asked before, by the rules of today.
func (c *Core) covers(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool {
	r := policy.Request{
		Caller: a.Caller, Chat: a.Place.ChatKey(), Session: string(a.Session), Tool: q.Tool, Inputs: q.Inputs, Dir: q.Dir, Scripts: q.Files, ReadOnly: q.ReadOnly,
		Trust: policy.Trusted, Confined: c.kit.confined, Server: q.Server, Definition: q.Definition,
	}
	if q.Dir != "" {
		r.InsidePaths = append([]string{q.Dir}, c.kit.commands.dirs...)
	}
	if json.Unmarshal([]byte(q.Args), &r.Args) != nil || c.policy.Decide(r).Effect != policy.Ask {
		return false
	}
	r.Grants = grants
	return c.policy.Decide(r).Effect == policy.Allow
}

// alive says whether the server of a grant is the one that it was stored for, and says the same about the tool.
func (c *Core) alive(g policy.Grant) bool {
	id, _, _ := strings.Cut(g.Tool, ":")
	if c.servers.Address(id) != g.Server {
		return false
	}
	tool, ok := c.registry.Lookup(g.Tool)
	return !ok || tool.Definition.Hash() == g.Definition // a server that is away for the moment is not another one
}

// ruleLine is what the audit says of a standing approval that was stored or revoked.
func (c *Core) ruleLine(e approval.RuleEvent) []bot.Fact {
	args, err := json.Marshal(map[string]any{"rule": e.Grant.Grant, "chat": e.Chat, "stored_by": e.Grant.By, "stored_at": e.Grant.At})
	if err != nil {
		c.log.Error().Err(err).Msg("standing approval not recorded")
		return nil
	}
	return c.due(&tools.Call{
		ID: e.ID, Tool: "policy_" + e.Verb, Args: args, Trail: &tools.Trail{ApprovedBy: e.By, Rule: "grant: " + e.Grant.Tool},
		Origin: tools.Origin{Channel: e.Place.Channel, Session: string(e.Session), Chat: e.Place.ChatKey(), Caller: e.By},
	}, nil)
}

// endGrants ends the standing approvals for the tools of a server that is no more.
func (c *Core) endGrants(ctx context.Context, server string) error {
	facts, err := approval.EndServer(ctx, c.stores.Bot, server, c.now())
	if err != nil || len(facts) == 0 {
		return err
	}
	_, err = c.stores.Bot.Apply(ctx, &bot.Change{Facts: facts})
	return err
}
