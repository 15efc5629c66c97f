package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/summary"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/scan"
)

// leastWindow is the smallest window that a conversation is fitted into.
const leastWindow = 1000

// windows returns the configured windows of the providers. A conversation may fill four fifths of one, so a window whose
// last fifth is less than the longest answer counts as smaller than it is.
func windows(cfg *config.Config) map[string]int {
	sizes := map[string]int{}
	for _, p := range cfg.LLM.Providers {
		if p.ContextTokens > 0 {
			sizes[p.Name] = max(min(p.ContextTokens, (p.ContextTokens-p.MaxTokens)/4*5), leastWindow)
		}
	}
	return sizes
}

// compaction is how the agent shortens conversations that become too long: the model of a turn sums up what is old.
func (c *Core) compaction() agent.Compaction {
	sumUp := summary.Conversation(spend.NewModel("conversation", c.provider), cmp.Or(c.zone(), time.UTC))
	return agent.Compaction{
		SumUp: func(ctx context.Context, talk agent.Talk) (string, error) { return sumUp(ctx, summary.Talk(talk)) },
		Suspect: func(text string) bool {
			return slices.ContainsFunc(scan.Find(text), func(m scan.Match) bool { return m.Category != "exfiltration" })
		},
	}
}
