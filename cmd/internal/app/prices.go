package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools"
)

// tariffOf returns what a provider's tokens cost; known is false when neither the configuration nor the tables say it, and
// what is known of it is returned then.
func tariffOf(p *config.Provider) (t cost.Tariff, known bool) {
	if t, known = cost.TariffOf(address(*p), p.Model); costsNothing(p) {
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
	return cost.FixedTariff(input, cached, written, output), known || (p.InputUSDPerMTok != nil && p.OutputUSDPerMTok != nil)
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
	return otherCost(p, p.TranscriptionModel, c.now(), cost.TranscriptionPrice)
}

// embeddingOf returns what a million tokens of texts cost that a provider embeds.
func (c *Core) embeddingOf(p *config.Provider) spend.Cost {
	if p.EmbeddingUSDPerMTok != nil {
		return spend.Cost{USD: *p.EmbeddingUSDPerMTok}
	}
	return otherCost(p, p.EmbeddingModel, c.now(), cost.EmbeddingPrice)
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
	for _, l := range configuredLimits(cfg) {
		if l.USDPerDay > 0 || l.USDPerMonth > 0 {
			return true
		}
	}
	return false
}

// priceList is what the models of the configuration cost.
type priceList struct {
	tariffs  map[string]cost.Tariff // those that are known, by the names of their providers
	unpriced map[string]string      // the same of the models whose price nobody knows
}

// pricesOf reads the tables for all providers.
func pricesOf(cfg *config.Config) *priceList {
	list := &priceList{tariffs: map[string]cost.Tariff{}, unpriced: map[string]string{}}
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
	return fmt.Sprintf("is not set, and nobody knows the price of %s (%s): %s", model, cost.PricesAsOf(), consequence)
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
	sizes, listed := cost.SizesOf(address(*p), p.Model), c.unlisted.listed(p.Name)
	window := cmp.Or(c.learntWindow(p.Name), p.ContextTokens, listed.Window, sizes.Window)
	return cmp.Or(listed.Output, sizes.Output, max(window-input, 0))
}

// meterOptions are [quotas] as the meter wants them.
func (c *Core) meterOptions() quota.Options {
	q := c.cfg.Quotas
	o := quota.Options{
		Limits: quota.Scopes{User: limitsOf(q.User), Chat: limitsOf(q.Chat), Bot: limitsOf(q.Bot)}, ByChat: map[string]quota.Limits{},
		Payer: q.Payer, Owner: c.owner, Older: func() bool { return c.stores.Older() }, Zone: c.zone(), Price: c.mostCost, Most: c.mostOf,
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

// longest is the answer for which the most is set aside before a call of a model, whatever is asked.
type longest struct {
	provider  *config.Provider // nil = there is no such answer
	tokens    int
	usd       float64
	unlimited bool // its server is sent no limit of the answer
}

// asides are the answers for which the most USD are set aside, of the models whose price is known, and the most tokens:
// people choose among the models, so they count for everybody.
type asides struct{ usd, tokens longest }

func (c *Core) longestAnswers() (a asides) {
	for i := range c.cfg.LLM.Providers {
		p := &c.cfg.LLM.Providers[i]
		if p.Type == "offline" {
			continue
		}
		one := longest{provider: p, tokens: longestAnswer(p)}
		if a.tokens.provider == nil || one.tokens > a.tokens.tokens {
			a.tokens = one
		}
		t, known := c.prices().tariffs[p.Name]
		if !known {
			continue
		}
		if d := dialectOf(*p).With(c.learnt.Recall(p.Name, p.Model)); d.Unlimited() {
			one.unlimited, one.tokens = true, max(one.tokens, c.mostWritten(p, 0))
		}
		one.usd = t.Most(llm.Usage{Output: one.tokens})
		if a.usd.provider == nil || one.usd > a.usd.usd {
			a.usd = one
		}
	}
	return a
}

// tooTight says why a limit lets no turn begin, and after "; " what to do about it; "" = it does not. limit is in the
// unit, USD in millionths.
func (a *asides) tooTight(of quota.Of, limit int64) string {
	usd, tokens := &a.usd, &a.tokens
	cure := "raise it, or lower max_tokens of that model"
	switch {
	case limit <= 0:
		return ""
	case of.Unit == quota.USD && usd.provider != nil && quota.Micro(usd.usd) > limit:
		how := ""
		if usd.unlimited {
			how = ", whose server takes no limit of it,"
			cure = "raise it, or choose a model whose answers can be limited"
		}
		return fmt.Sprintf("$%.4g a %s is less than the $%.4g that one answer of %s%s may cost (%d tokens), which are set aside before each call, so every turn is refused; %s",
			float64(limit)/1e6, of.Window, usd.usd, usd.provider.Model, how, usd.tokens, cure)
	case of.Unit == quota.Tokens && tokens.provider != nil && int64(tokens.tokens) > limit:
		return fmt.Sprintf("%d tokens a %s are fewer than the %d that one answer of %s may have, which are set aside before each call, so every turn is refused; %s",
			limit, of.Window, tokens.tokens, tokens.provider.Model, cure)
	default:
		return ""
	}
}

// configuredLimits returns the limits of the configuration, by the keys of their tables.
func configuredLimits(cfg *config.Config) map[string]config.Limits {
	all := map[string]config.Limits{"quotas.user": cfg.Quotas.User, "quotas.chat": cfg.Quotas.Chat, "quotas.bot": cfg.Quotas.Bot}
	for id, chat := range cfg.Telegram.Chats {
		if chat.Quota != nil {
			all[config.Entry("telegram.chats", id)+".quota"] = *chat.Quota
		}
	}
	return all
}

// tightLimits warns about limits of the configuration that let no turn begin.
func (k *inspector) tightLimits(c *Core) {
	limits, answers := configuredLimits(k.c), c.longestAnswers()
	for _, table := range sortedKeys(limits) {
		of := limitsOf(limits[table])
		for _, key := range []struct {
			name string
			of   quota.Of
		}{
			{"usd_per_day", quota.Of{Unit: quota.USD, Window: quota.Day}},
			{"usd_per_month", quota.Of{Unit: quota.USD, Window: quota.Month}},
			{"tokens_per_day", quota.Of{Unit: quota.Tokens, Window: quota.Day}},
			{"tokens_per_month", quota.Of{Unit: quota.Tokens, Window: quota.Month}},
		} {
			if text := answers.tooTight(key.of, of[key.of]); text != "" {
				k.warn(table+"."+key.name, "%s", text)
			}
		}
	}
}

// setLimits returns what is wrong with the limits that were set in the chat, each with what to do about it after "; ".
func (c *Core) setLimits(list []quota.SetLimit) []string {
	if len(list) == 0 {
		return nil
	}
	var found []string
	limited, answers := false, c.longestAnswers()
	for _, s := range list {
		limited = limited || s.Of.Unit == quota.USD && s.Limit > 0
		if text := answers.tooTight(s.Of, s.Limit); text != "" {
			found = append(found, s.Level+": "+text)
		}
	}
	if limited && !limitsMoney(c.cfg) { // those of the configuration are found by Check
		for _, provider := range sortedKeys(c.prices().unpriced) {
			found = append(found, fmt.Sprintf("nobody knows the price of %s (%s), so whoever has a limit of USD is refused turns that it would answer; set input_usd_per_mtok and output_usd_per_mtok of %s, also to 0",
				c.prices().unpriced[provider], cost.PricesAsOf(), provider))
		}
	}
	return found
}

// tellLimits warns about limits that were set in the chat and do not fit the models. Those of the configuration are found by
// Check, except for what only a server's refusals have shown: that it takes no limit of its answers.
func (s *service) tellLimits() {
	for _, text := range s.core.setLimits(s.meter.SetLimits()) {
		s.core.log.Warn().Str("limit", text).Msg("a limit that was set in the chat does not fit the models")
	}
	if answers := s.core.longestAnswers(); answers.usd.unlimited {
		k := &inspector{c: s.core.cfg}
		k.tightLimits(s.core)
		for _, w := range k.found.Warnings {
			s.core.log.Warn().Str("config", w.String()).Msg("start")
		}
	}
}

// limits looks at the limits that were set in the chat, as the database has them.
func (d *doctor) limits(ctx context.Context) []Row {
	const about = "quotas"
	url := d.c.Database.URL.Reveal()
	store, err := persistence.OpenReader(ctx, d.dir, url)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody has set any
	}
	unread := warn(about, "whether limits that were set in the chat fit the models is not known: the database cannot be read")("see the row database")
	if err != nil {
		return []Row{unread}
	}
	defer func() { _ = store.Close() }() // it was only read
	stored, err := store.FactsOf(ctx, quota.Bucket, "", d.opts.Now())
	if err != nil {
		return []Row{unread}
	}
	opts := d.opts.Options
	opts.Log = zerolog.Nop()
	c := newCore(opts)
	entries, err := learntIn(ctx, d.c, d.dir, url, d.opts.Now())
	if err != nil {
		return []Row{unread}
	}
	for _, e := range entries {
		c.learnt.Update(e.Provider, e.Model, func(l *dialect.Learnt) { *l = *e.Learnt.Clone() })
	}
	list := quota.SetLimits(stored)
	var rows []Row
	for _, text := range c.setLimits(list) {
		i := strings.LastIndex(text, "; ")
		rows = append(rows, warn(about, "%s", text[:i])(text[i+2:]))
	}
	if len(rows) == 0 && len(list) > 0 {
		return ok(about, "%d limits are set in the chat; they fit the models", len(list))
	}
	return rows
}

func limitsOf(l config.Limits) quota.Limits {
	return quota.Limits{
		{Unit: quota.Turns, Window: quota.Day}: int64(l.TurnsPerDay), {Unit: quota.Turns, Window: quota.Month}: int64(l.TurnsPerMonth),
		{Unit: quota.Tokens, Window: quota.Day}: int64(l.TokensPerDay), {Unit: quota.Tokens, Window: quota.Month}: int64(l.TokensPerMonth),
		{Unit: quota.USD, Window: quota.Day}: quota.Micro(l.USDPerDay), {Unit: quota.USD, Window: quota.Month}: quota.Micro(l.USDPerMonth),
	}
}
