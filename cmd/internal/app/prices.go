package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/price"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
)

// priceOf is what a provider's tokens cost; known is false when neither the configuration nor the table says it.
func priceOf(p *config.Provider) (found price.Price, known bool) {
	found, known = price.Of(p.Model)
	if p.Type == "ollama" || p.Type == "offline" {
		found, known = price.Price{}, true
	}
	if p.InputUSDPerMTok != nil {
		found.Input, found.Cached = *p.InputUSDPerMTok, *p.InputUSDPerMTok
		if p.Type == "anthropic" {
			found.Cached /= 10
		}
	}
	if p.OutputUSDPerMTok != nil {
		found.Output = *p.OutputUSDPerMTok
	}
	if p.CachedInputUSDPerMTok != nil {
		found.Cached = *p.CachedInputUSDPerMTok
	}
	return found, known || (p.InputUSDPerMTok != nil && p.OutputUSDPerMTok != nil)
}

// countedAt is the price at which a provider's tokens are counted: where nobody knows it and money is limited, the
// highest that is known. What is limited is never counted as nothing.
func countedAt(cfg *config.Config, p *config.Provider) price.Price {
	found, known := priceOf(p)
	if known || !limitsMoney(cfg) {
		return found
	}
	high := price.Highest()
	for i := range cfg.LLM.Providers {
		other, _ := priceOf(&cfg.LLM.Providers[i])
		high = price.Price{Input: max(high.Input, other.Input), Cached: max(high.Cached, other.Cached), Output: max(high.Output, other.Output)}
	}
	return high
}

// minuteAt is the price at which a minute of a recording is counted, by the same rules as countedAt.
func minuteAt(cfg *config.Config, p *config.Provider) float64 {
	if p.TranscriptionUSDPerMinute != nil {
		return *p.TranscriptionUSDPerMinute
	}
	return countedOr(cfg, p, p.TranscriptionModel, price.OfTranscription, price.HighestTranscription)
}

// embeddingAt is the price at which a million tokens of texts that are embedded are counted.
func embeddingAt(cfg *config.Config, p *config.Provider) float64 {
	return countedOr(cfg, p, p.EmbeddingModel, price.OfEmbedding, price.HighestEmbedding)
}

func countedOr(cfg *config.Config, p *config.Provider, model string, of func(string) (float64, bool), highest func() float64) float64 {
	usd, known := of(model)
	switch {
	case p.Type == "ollama" || p.Type == "offline":
		return 0
	case known || !limitsMoney(cfg):
		return usd
	default:
		return highest()
	}
}

// limitsMoney says whether the configuration limits USD anywhere.
func limitsMoney(cfg *config.Config) bool {
	q := cfg.Quotas
	all := []config.Limits{q.User, q.Chat, q.Bot}
	for _, chat := range cfg.Telegram.Chats {
		if chat.Quota != nil {
			all = append(all, *chat.Quota)
		}
	}
	return slices.ContainsFunc(all, func(l config.Limits) bool { return l.USDPerDay > 0 || l.USDPerMonth > 0 })
}

// priceless names the models whose price nobody knows.
func priceless(cfg *config.Config) []string {
	var names []string
	for i := range cfg.LLM.Providers {
		p := &cfg.LLM.Providers[i]
		if _, known := priceOf(p); !known {
			names = append(names, cmp.Or(p.Model, p.Name))
		}
	}
	return names
}

// unpriced says what is wrong with a provider without a price where money is limited; "" = nothing.
func unpriced(cfg *config.Config, p *config.Provider) string {
	if _, known := priceOf(p); known || !limitsMoney(cfg) {
		return ""
	}
	at := countedAt(cfg, p)
	return fmt.Sprintf("is not set, and the price of %s is not known (table of %s): for the limits of USD it is counted as $%g for a million input tokens and $%g for output, "+
		"the highest that is known; set input_usd_per_mtok and output_usd_per_mtok", p.Model, price.AsOf, at.Input, at.Output)
}

// mostCost is the most that tokens cost, whichever provider answers: people choose among them.
func (c *Core) mostCost(u llm.Usage) float64 {
	var most float64
	for i := range c.cfg.LLM.Providers {
		p := &c.cfg.LLM.Providers[i]
		at := countedAt(c.cfg, p)
		input := at.Input
		if p.Type == "anthropic" {
			input *= 1.25 // all of it may be written into the cache
		}
		most = max(most, (float64(u.Input)*input+float64(u.Output)*at.Output)/1e6)
	}
	return most
}

// longestAnswer is how many tokens a provider may answer with.
func (c *Core) longestAnswer() int {
	most := 0
	for i := range c.cfg.LLM.Providers {
		most = max(most, c.cfg.LLM.Providers[i].MaxTokens)
	}
	return most
}

// meterOptions are [quotas] as the meter wants them.
func (c *Core) meterOptions() quota.Options {
	q := c.cfg.Quotas
	o := quota.Options{
		Limits: quota.Scopes{User: limitsOf(q.User), Chat: limitsOf(q.Chat), Bot: limitsOf(q.Bot)}, ByChat: map[string]quota.Limits{},
		Payer: q.Payer, AllowOnDown: q.OnRedisDown == "allow", Zone: c.zone(), Price: c.mostCost, Output: c.longestAnswer(),
		Hold: 4 * c.cfg.LLM.Timeout,
	}
	for id, chat := range c.cfg.Telegram.Chats {
		if chat.Quota != nil {
			o.ByChat[id] = limitsOf(*chat.Quota)
		}
	}
	return o
}

// quotaLine is what the audit says of a limit that an admin has set or taken back.
func (c *Core) quotaLine(call *turn.Call, args any) []bot.Fact {
	raw, err := json.Marshal(args)
	if err != nil {
		c.log.Error().Err(err).Msg("quota that was set not recorded")
		return nil
	}
	msg := call.Message
	return c.records.Due(&tools.Call{
		ID: msg.ID, Tool: "quota_set", Args: raw, Trail: &tools.Trail{ApprovedBy: msg.Caller},
		Origin: tools.Origin{Channel: msg.Place.Channel, Session: string(call.Session), Chat: msg.Place.ChatKey(), Caller: msg.Caller, Admin: call.Admin},
	}, nil)
}

// followLimits reads the limits that admins have set in the chat.
func (s *service) followLimits(ctx context.Context) error {
	return s.meter.Follow(ctx, s.core.stores.Bot)
}

func limitsOf(l config.Limits) quota.Limits {
	return quota.Limits{
		{Unit: quota.Turns, Window: quota.Day}: int64(l.TurnsPerDay), {Unit: quota.Turns, Window: quota.Month}: int64(l.TurnsPerMonth),
		{Unit: quota.Tokens, Window: quota.Day}: int64(l.TokensPerDay), {Unit: quota.Tokens, Window: quota.Month}: int64(l.TokensPerMonth),
		{Unit: quota.USD, Window: quota.Day}: quota.Micro(l.USDPerDay), {Unit: quota.USD, Window: quota.Month}: quota.Micro(l.USDPerMonth),
	}
}
