package check

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
)

// models builds the models like a start.
func (k *inspector) models() {
	m := providers.New(providers.Options{Config: k.c, Log: zerolog.Nop(), Now: k.opts.Now})
	if len(k.c.LLM.Providers) == 0 {
		_, err := m.Route()
		k.refuse("llm.providers", err)
		return
	}
	for i, p := range k.c.LLM.Providers {
		at := fmt.Sprintf("llm.providers[%d]", i)
		if _, err := m.NewProvider(p); err != nil && !errors.Is(err, providers.ErrType) { // config has refused the type
			k.provider(at, &p, err)
		}
		if p.MaxTokens >= k.c.Agent.ContextBudgetTokens {
			k.warn(at+".max_tokens", "an answer of %d tokens leaves nothing of agent.context_budget_tokens (%d) for "+
				"the conversation; lower it, or raise that",
				p.MaxTokens, k.c.Agent.ContextBudgetTokens)
		}
		if providers.LimitsMoney(k.c) {
			k.missingPrices(m, at, &k.c.LLM.Providers[i])
		}
		if p.Keys()[0] == "" && wantsKey(&p) {
			k.warn(
				at+".api_key", "is empty; %s refuses requests without a key: set it here, or %s",
				p.BaseURL, providers.KeyVariables(&p),
			)
		}
	}
	k.found.Warnings = append(k.found.Warnings, TightLimits(k.c, m.Offers())...)
	if _, _, err := m.Embedder(""); err != nil {
		k.wrong("llm.embedding", "%s", err)
	}
	if name := k.c.MCP.ToolDiscovery.Provider; name != "" {
		if _, _, err := m.Embedder(name); err != nil {
			k.wrong("mcp.tool_discovery.embedding_provider", "%s", err)
		}
	}
}

// provider reports an error of a provider at the setting that it begins with.
func (k *inspector) provider(at string, p *config.Provider, err error) {
	text := strings.TrimPrefix(err.Error(), "provider "+p.Name+": ")
	setting, rest, _ := strings.Cut(text, " ")
	if slices.Contains([]string{"api_key", "base_url", "model"}, setting) {
		at, text = at+"."+setting, rest
	}
	if setting == "api_key" && p.Keys()[0] == "" {
		text += "; set it here, or " + providers.KeyVariables(p)
	}
	k.wrong(at, "%s", text)
}

// wantsKey says whether a server is known to refuse requests without a key: one of a vendor, by the table of dialects
// or by the usual form of such addresses. What runs on this machine, also in the place of a vendor, has keys or not.
func wantsKey(p *config.Provider) bool {
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Host == "" || p.Type != "anthropic" && p.Type != "openai" || OnMachine(u.Hostname()) {
		return false
	}
	d := providers.DialectOf(*p)
	return d.Key != "" && d.Port == 0 || u.Scheme == "https" && strings.HasPrefix(u.Hostname(), "api.")
}

// missingPrice says what happens without the price of a model, after the key that would set it.
func missingPrice(model, consequence string) string {
	return fmt.Sprintf("is not set, and nobody knows the price of %s (%s): %s", model, cost.PricesAsOf(), consequence)
}

// TightLimits warns about limits of a configuration that let no turn begin with the models on offer.
func TightLimits(cfg *config.Config, offers spend.Offers) config.Problems {
	var found config.Problems
	limits := providers.ConfiguredLimits(cfg)
	for _, table := range slices.Sorted(maps.Keys(limits)) {
		of := providers.QuotaLimits(limits[table])
		for _, key := range []struct {
			name string
			of   quota.Of
		}{
			{"usd_per_day", quota.Of{Unit: quota.USD, Window: quota.Day}},
			{"usd_per_month", quota.Of{Unit: quota.USD, Window: quota.Month}},
			{"tokens_per_day", quota.Of{Unit: quota.Tokens, Window: quota.Day}},
			{"tokens_per_month", quota.Of{Unit: quota.Tokens, Window: quota.Month}},
		} {
			if text := quota.TooTight(key.of, of[key.of], offers); text != "" {
				found = append(found, cfg.Problem(table+"."+key.name, text))
			}
		}
	}
	return found
}

// missingPrices reports what is refused because nobody knows its price and USD are limited.
func (k *inspector) missingPrices(m *providers.Set, at string, p *config.Provider) {
	l := k.c.LLM
	if model := m.Offers().Unpriced()[p.Name]; model != "" {
		missing, other := "input_usd_per_mtok", "; set it and output_usd_per_mtok, also to 0"
		switch {
		case p.InputUSDPerMTok != nil:
			missing, other = "output_usd_per_mtok", "; set it, also to 0"
		case p.OutputUSDPerMTok != nil:
			other = "; set it, also to 0"
		}
		consequence := "turns that it would answer are refused to whoever has a limit of USD"
		if slices.Contains(l.Fallback, p.Name) && l.Primary != p.Name && !slices.Contains(l.Choices, p.Name) {
			consequence = "this fallback is not asked for whoever has a limit of USD"
		}
		k.fault(at+"."+missing, "%s", missingPrice(model, consequence+other))
	}
	if cost := m.MinuteCost(p); cost.Unpriced != "" {
		k.fault(at+".transcription_usd_per_minute", "%s", missingPrice(
			cost.Unpriced, "voice messages of whoever has a limit of USD are not written down; set it, also to 0",
		))
	}
	if cost := m.SpeechCost(p); cost.Unpriced != "" {
		k.fault(at+".speech_usd_per_mchar", "%s", missingPrice(
			cost.Unpriced, "answers to whoever has a limit of USD are not spoken; set it, also to 0",
		))
	}
	if model := m.UnpricedImages(p); model != "" {
		k.fault(at+".image_usd", "%s", missingPrice(
			model, "pictures for whoever has a limit of USD are not made; set it, also to 0",
		))
	}
	used := l.Embedding == p.Name || k.c.MCP.ToolDiscovery.Provider == p.Name
	if cost := m.EmbeddingCost(p); cost.Unpriced != "" && used {
		k.fault(
			at+".embedding_usd_per_mtok", "%s",
			missingPrice(cost.Unpriced, "embeddings for whoever has a limit of USD are refused; set it, also to 0"),
		)
	}
}
