package app

import (
	"maps"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/providers"
)

// meterOptions are [quotas] as the meter wants them.
func (c *Core) meterOptions() quota.Options {
	q := c.cfg.Quotas
	o := quota.Options{
		Limits: quota.Scopes{
			User: providers.QuotaLimits(q.User),
			Chat: providers.QuotaLimits(q.Chat),
			Bot:  providers.QuotaLimits(q.Bot),
		},
		ByChat:   map[string]quota.Limits{},
		Payer:    q.Payer,
		Owner:    c.owner,
		Older:    func() bool { return c.stores.Older() },
		Zone:     c.zone(),
		Price:    c.models.Offers().MostCost,
		Most:     c.models.Offers().MostOf,
		Hold:     4 * c.cfg.LLM.Timeout,
		Unpriced: func(prefer string) string { return llm.UnpricedFor(c.provider, prefer) },
	}
	for id, chat := range c.cfg.Telegram.Chats {
		if chat.Quota != nil {
			o.ByChat[id] = providers.QuotaLimits(*chat.Quota)
		}
	}
	return o
}

// newQuotas builds what carries out what admins say about limits.
func (s *service) newQuotas(store bot.Store) *quota.Manager {
	c := s.core
	return &quota.Manager{
		Meter:     s.meter,
		Facts:     store,
		Words:     c.words(),
		Now:       c.now,
		Admins:    s.ch.admins,
		Names:     s.ch.names,
		Priceless: slices.Sorted(maps.Values(c.models.Offers().Unpriced())),
		Record:    c.quotaLine,
		Recorded:  c.records.Settle,
	}
}

// quotaLine is what the audit says of a limit that an admin has set or taken back.
func (c *Core) quotaLine(call *turn.Call, args any) []bot.Fact {
	return c.commandLine(call, "quota_set", args)
}

// tellLimits warns about limits that were set in the chat and do not fit the models. Those of the configuration are
// found by Check, except for what only a server's refusals have shown: that it takes no limit of its answers.
func (s *service) tellLimits() {
	for _, text := range s.core.models.SetLimits(s.meter.SetLimits()) {
		s.core.log.Warn().Str("limit", text).Msg("a limit that was set in the chat does not fit the models")
	}
	offers := s.core.models.Offers()
	if usd, _ := offers.LongestAnswers(); usd != nil && usd.Unlimited {
		for _, w := range check.TightLimits(s.core.cfg, offers) {
			s.core.log.Warn().Str("config", w.String()).Msg("start")
		}
	}
}
