package app

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
)

// consumption is what a conversation has used.
type consumption struct {
	tokens int     // of the latest request to the model and its answer: what fills the context
	room   int     // for them; 0 = unknown
	usd    float64 // since the conversation began; 0 = nothing, or no prices are known
}

// consumptionOf returns what a conversation has used since it began (/new).
func (c *Core) consumptionOf(ctx context.Context, session bot.SessionKey) (consumption, error) {
	entries, err := c.stores.Bot.Journal(ctx, session, 0)
	if err != nil {
		return consumption{}, fmt.Errorf("read what a conversation has used: %w", err)
	}
	used := consumption{room: max(0, c.cfg.Agent.ContextBudgetTokens)}
	if own := llm.WindowFor(c.provider, c.choices.Of(session)); own > 0 && (used.room == 0 || own < used.room) {
		used.room = own
	}
	for i := range entries {
		e := &entries[i]
		used.usd += e.USD
		if e.Child == "" && e.Usage.Total() > 0 { // a sub-agent has a context of its own
			used.tokens = e.Usage.Total()
		}
	}
	return used, nil
}
