package providers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TariffOf returns what a provider's tokens cost; known is false when neither the configuration nor the tables say it,
// and what is known of it is returned then.
func TariffOf(p *config.Provider) (t cost.Tariff, known bool) {
	if t, known = cost.TariffOf(Address(*p), p.Model); costsNothing(p) {
		t, known = cost.Tariff{}, true
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
	return cost.FixedTariff(input, cached, written, output), known ||
		(p.InputUSDPerMTok != nil && p.OutputUSDPerMTok != nil)
}

// costsNothing reports whether a provider runs on machines of the operator, who pays for no tokens.
func costsNothing(p *config.Provider) bool {
	return p.Type == "ollama" || p.Type == "offline" || DialectOf(*p).Free
}

// MinuteCost returns what a minute of a recording costs that a provider writes down.
func (m *Set) MinuteCost(p *config.Provider) spend.Cost {
	if p.TranscriptionUSDPerMinute != nil {
		return spend.Cost{USD: *p.TranscriptionUSDPerMinute}
	}
	return otherCost(p, p.TranscriptionModel, m.opts.Now(), cost.TranscriptionPrice)
}

// SpeechCost returns what a million characters cost that a provider speaks.
func (m *Set) SpeechCost(p *config.Provider) spend.Cost {
	if p.SpeechUSDPerMChar != nil {
		return spend.Cost{USD: *p.SpeechUSDPerMChar}
	}
	return otherCost(p, p.SpeechModel, m.opts.Now(), cost.SpeechPrice)
}

// imagePrice returns what a picture of a provider costs.
func (m *Set) imagePrice(p *config.Provider) openai.PicturePrice {
	each, tokens, _ := m.priceOfPicture(p)
	return openai.PicturePrice{Each: each, Tokens: tokens}
}

// UnpricedImages names the model of a provider that makes pictures if nobody knows their price; "" = it is known.
func (m *Set) UnpricedImages(p *config.Provider) string {
	if _, _, known := m.priceOfPicture(p); !known {
		return p.ImageModel
	}
	return ""
}

func (m *Set) priceOfPicture(p *config.Provider) (each *cost.Steps, tokens cost.Tariff, known bool) {
	switch {
	case p.ImageUSD != nil:
		return cost.FlatPrice(*p.ImageUSD), tokens, true
	case p.ImageModel == "" || costsNothing(p):
		return cost.FlatPrice(0), tokens, true
	}
	if each, known = cost.PicturePrice(Address(*p), p.ImageModel, m.opts.Now()); known {
		return each, tokens, true
	}
	tokens, known = cost.TariffOf(Address(*p), p.ImageModel)
	return nil, tokens, known
}

// imageQuality is llm.providers[].image_quality as the server is asked for it; "" = its own.
func imageQuality(p *config.Provider) string {
	if p.ImageQuality == "auto" {
		return ""
	}
	return p.ImageQuality
}

// EmbeddingCost returns what a million tokens of texts cost that a provider embeds.
func (m *Set) EmbeddingCost(p *config.Provider) spend.Cost {
	if p.EmbeddingUSDPerMTok != nil {
		return spend.Cost{USD: *p.EmbeddingUSDPerMTok}
	}
	return otherCost(p, p.EmbeddingModel, m.opts.Now(), cost.EmbeddingPrice)
}

func otherCost(
	p *config.Provider, model string, now time.Time, of func(base, model string, now time.Time) (float64, bool),
) spend.Cost {
	if costsNothing(p) || model == "" {
		return spend.Cost{}
	}
	usd, known := of(Address(*p), model, now)
	if !known {
		return spend.Cost{Unpriced: model}
	}
	return spend.Cost{USD: usd}
}

// Offers returns what the models may cost.
func (m *Set) Offers() spend.Offers { return m.offers() }

func (m *Set) readOffers() spend.Offers {
	var list spend.Offers
	for i := range m.cfg.LLM.Providers {
		p := &m.cfg.LLM.Providers[i]
		one := spend.Offer{
			Provider: p.Name, Model: p.Model, BuiltIn: p.Type == "offline", Answer: longestAnswer(p),
			Written: func(input int) int { return m.mostWritten(p, input) },
			Unlimited: func() bool {
				d := DialectOf(*p).With(m.Learnt.Recall(p.Name, p.Model))
				return d.Unlimited()
			},
		}
		one.Tariff, one.Priced = TariffOf(p)
		list = append(list, one)
	}
	return list
}

// mostWritten is how many tokens a model can write where nothing limits its answer: its longest answer, or else what is
// left of its window, as far as either is known; 0 = nobody knows.
func (m *Set) mostWritten(p *config.Provider, input int) int {
	sizes, listed := cost.SizesOf(Address(*p), p.Model), m.unlisted.listed(p.Name)
	window := cmp.Or(m.learntWindow(p.Name), p.ContextTokens, listed.Window, sizes.Window)
	return cmp.Or(listed.Output, sizes.Output, max(window-input, 0))
}

// LimitsMoney says whether a configuration limits USD anywhere.
func LimitsMoney(cfg *config.Config) bool {
	for _, l := range ConfiguredLimits(cfg) {
		if l.USDPerDay > 0 || l.USDPerMonth > 0 {
			return true
		}
	}
	return false
}

// ConfiguredLimits returns the limits of the configuration, by the keys of their tables.
func ConfiguredLimits(cfg *config.Config) map[string]config.Limits {
	all := map[string]config.Limits{
		"quotas.user": cfg.Quotas.User,
		"quotas.chat": cfg.Quotas.Chat,
		"quotas.bot":  cfg.Quotas.Bot,
	}
	for id, chat := range cfg.Telegram.Chats {
		if chat.Quota != nil {
			all[config.Entry("telegram.chats", id)+".quota"] = *chat.Quota
		}
	}
	return all
}

// QuotaLimits converts limits of the configuration.
func QuotaLimits(l config.Limits) quota.Limits {
	return quota.Limits{
		{Unit: quota.Turns, Window: quota.Day}:    int64(l.TurnsPerDay),
		{Unit: quota.Turns, Window: quota.Month}:  int64(l.TurnsPerMonth),
		{Unit: quota.Tokens, Window: quota.Day}:   int64(l.TokensPerDay),
		{Unit: quota.Tokens, Window: quota.Month}: int64(l.TokensPerMonth),
		{Unit: quota.USD, Window: quota.Day}:      quota.Micro(l.USDPerDay),
		{Unit: quota.USD, Window: quota.Month}:    quota.Micro(l.USDPerMonth),
	}
}

// SetLimits returns what is wrong with the limits that were set in the chat, each with what to do about it after "; ".
func (m *Set) SetLimits(list []quota.SetLimit) []string {
	if len(list) == 0 {
		return nil
	}
	var found []string
	limited, offers := false, m.Offers()
	for _, s := range list {
		limited = limited || s.Of.Unit == quota.USD && s.Limit > 0
		if text := quota.TooTight(s.Of, s.Limit, offers); text != "" {
			found = append(found, s.Level+": "+text)
		}
	}
	if limited && !LimitsMoney(m.cfg) { // those of the configuration are found by Check
		unpriced := offers.Unpriced()
		for _, provider := range slices.Sorted(maps.Keys(unpriced)) {
			found = append(found, fmt.Sprintf("nobody knows the price of %s (%s), so whoever has a limit of USD is "+
				"refused turns that it would answer; set input_usd_per_mtok and output_usd_per_mtok of %s, also to 0",
				unpriced[provider], cost.PricesAsOf(), provider))
		}
	}
	return found
}
