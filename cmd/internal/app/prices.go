package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/price"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
)

// tariffOf returns what a provider's tokens cost; known is false when neither the configuration nor the tables say it, and
// what is known of it is returned then.
func tariffOf(p *config.Provider) (t price.Tariff, known bool) {
	if t, known = price.Of(address(*p), p.Model); costsNothing(p) {
		t, known = price.Tariff{}, true
	}
	if p.InputUSDPerMTok == nil && p.OutputUSDPerMTok == nil && p.CachedInputUSDPerMTok == nil {
		return t, known
	}
	input, cached, output := t.Highest()
	written := input
	if p.InputUSDPerMTok != nil {
		input, cached, written = *p.InputUSDPerMTok, *p.InputUSDPerMTok, *p.InputUSDPerMTok
		if p.Type == "anthropic" { // as the vendor publishes it
			cached, written = input*0.1, input*1.25
		}
	}
	if p.OutputUSDPerMTok != nil {
		output = *p.OutputUSDPerMTok
	}
	if p.CachedInputUSDPerMTok != nil {
		cached = *p.CachedInputUSDPerMTok
	}
	return price.Fixed(input, cached, written, output), known || (p.InputUSDPerMTok != nil && p.OutputUSDPerMTok != nil)
}

// costsNothing reports whether a provider runs on machines of the operator, who pays for no tokens.
func costsNothing(p *config.Provider) bool {
	return p.Type == "ollama" || p.Type == "offline" || dialectOf(*p).Free
}

// minuteOf returns what a minute of a recording costs that a provider writes down.
func (c *Core) minuteOf(p *config.Provider) spend.Cost {
	if p.TranscriptionUSDPerMinute != nil {
		return spend.Cost{USD: *p.TranscriptionUSDPerMinute}
	}
	return otherCost(p, p.TranscriptionModel, c.now(), price.OfTranscription)
}

// embeddingOf returns what a million tokens of texts cost that a provider embeds.
func (c *Core) embeddingOf(p *config.Provider) spend.Cost {
	if p.EmbeddingUSDPerMTok != nil {
		return spend.Cost{USD: *p.EmbeddingUSDPerMTok}
	}
	return otherCost(p, p.EmbeddingModel, c.now(), price.OfEmbedding)
}

func otherCost(p *config.Provider, model string, now time.Time, of func(base, model string, now time.Time) (float64, bool)) spend.Cost {
	if costsNothing(p) || model == "" {
		return spend.Cost{}
	}
	usd, known := of(address(*p), model, now)
	if !known {
		return spend.Cost{Unpriced: model}
	}
	return spend.Cost{USD: usd}
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

// priceList is what the models of the configuration cost.
type priceList struct {
	tariffs  map[string]price.Tariff // those that are known, by the names of their providers
	unpriced map[string]string       // the same of the models whose price nobody knows
}

// pricesOf reads the tables for all providers.
func pricesOf(cfg *config.Config) *priceList {
	list := &priceList{tariffs: map[string]price.Tariff{}, unpriced: map[string]string{}}
	for i := range cfg.LLM.Providers {
		p := &cfg.LLM.Providers[i]
		if t, known := tariffOf(p); known {
			list.tariffs[p.Name] = t
		} else {
			list.unpriced[p.Name] = cmp.Or(p.Model, p.Name)
		}
	}
	return list
}

// missingPrice says what happens without the price of a model, after the key that would set it.
func missingPrice(model, consequence string) string {
	return fmt.Sprintf("is not set, and nobody knows the price of %s (%s): %s", model, price.AsOf(), consequence)
}

// mostCost is the most that tokens cost, whichever provider answers of those whose price is known: people choose among
// them.
func (c *Core) mostCost(u llm.Usage) float64 {
	var most float64
	for _, t := range c.prices().tariffs {
		most = max(most, t.Most(u))
	}
	return most
}

// mostOf is the most that a call may cost, and the longest answer, whichever provider gives it. A server that is not sent
// a limit of the answer, because its dialect or its refusals say so, may answer with all that its model can write: that is
// what it may cost. What counts as the longest answer is what is asked for, because quotas of tokens would otherwise set
// aside what hardly any answer needs.
func (c *Core) mostOf(asked llm.Usage) (output int, usd float64) {
	if output = asked.Output; output <= 0 {
		for i := range c.cfg.LLM.Providers {
			output = max(output, longestAnswer(&c.cfg.LLM.Providers[i]))
		}
	}
	for i := range c.cfg.LLM.Providers {
		p := &c.cfg.LLM.Providers[i]
		t, known := c.prices().tariffs[p.Name]
		if !known {
			continue
		}
		u := asked
		if u.Output <= 0 {
			u.Output = longestAnswer(p)
		}
		if d := dialectOf(*p).With(c.learnt.Recall(p.Name, p.Model)); d.Unlimited() {
			u.Output = max(u.Output, c.mostWritten(p, asked.Input))
		}
		usd = max(usd, t.Most(u))
	}
	return output, usd
}

// mostWritten is how many tokens a model can write where nothing limits its answer: its longest answer, or else what is
// left of its window, as far as either is known; 0 = nobody knows.
func (c *Core) mostWritten(p *config.Provider, input int) int {
	sizes, listed := price.SizesOf(address(*p), p.Model), c.unlisted.listed(p.Name)
	window := cmp.Or(c.learntWindow(p.Name), p.ContextTokens, listed.Window, sizes.Window)
	return cmp.Or(listed.Output, sizes.Output, max(window-input, 0))
}

// meterOptions are [quotas] as the meter wants them.
func (c *Core) meterOptions() quota.Options {
	q := c.cfg.Quotas
	o := quota.Options{
		Limits: quota.Scopes{User: limitsOf(q.User), Chat: limitsOf(q.Chat), Bot: limitsOf(q.Bot)}, ByChat: map[string]quota.Limits{},
		Payer: q.Payer, AllowOnDown: q.OnRedisDown == "allow", Zone: c.zone(), Price: c.mostCost, Most: c.mostOf,
		Hold: 4 * c.cfg.LLM.Timeout, Unpriced: func(prefer string) string { return llm.UnpricedFor(c.provider, prefer) },
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

// tellMissingPrices warns if somebody has a limit of USD that was set in the chat, and a price is missing. Those of the
// configuration are found by Check.
func (s *service) tellMissingPrices() {
	if limitsMoney(s.core.cfg) || !s.meter.LimitsUSD() {
		return
	}
	for provider, model := range s.core.prices().unpriced {
		s.core.log.Warn().Str("provider", provider).Str("model", model).
			Msg("a limit of USD was set in the chat, and nobody knows the price of this model: turns that it would answer are refused; set input_usd_per_mtok and output_usd_per_mtok")
	}
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
