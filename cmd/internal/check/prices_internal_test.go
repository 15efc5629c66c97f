package check

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// priced returns a configuration with providers and a limit of USD a day for everybody; 0 = none.
func priced(limit float64, p ...config.Provider) *config.Config {
	c := &config.Config{}
	c.Quotas.User.USDPerDay, c.LLM.Providers, c.LLM.Primary = limit, p, "main"
	return c
}

// TestMissingPrices: what is refused under a limit of USD is a finding for each price that is missing, and none without
// such a limit.
func TestMissingPrices(t *testing.T) {
	t.Parallel()
	free := 0.0
	own := config.Provider{Type: "openai", BaseURL: "https://models.example.com/v1", Model: "our-model", MaxTokens: 5, TranscriptionModel: "our-ear", EmbeddingModel: "our-vectors"}
	set := own
	set.InputUSDPerMTok, set.OutputUSDPerMTok, set.TranscriptionUSDPerMinute, set.EmbeddingUSDPerMTok = &free, &free, &free, &free
	half, otherHalf := own, own
	half.InputUSDPerMTok, otherHalf.OutputUSDPerMTok = &free, &free
	local := own
	local.Type, local.BaseURL = "ollama", "http://localhost:11434"
	for name, tt := range map[string]struct {
		limit    float64
		p        config.Provider
		fallback bool
		want     []string
	}{
		"limited":    {1, own, false, []string{"input_usd_per_mtok: is not set", "our-ear", "our-vectors"}},
		"input set":  {1, half, false, []string{"output_usd_per_mtok: is not set", "our-ear", "our-vectors"}},
		"output set": {1, otherHalf, false, []string{"input_usd_per_mtok: is not set", "our-ear", "our-vectors"}},
		"a fallback": {1, own, true, []string{"this fallback is not asked", "our-ear", "our-vectors"}},
		"no limit":   {0, own, false, nil},
		"set":        {1, set, false, nil},
		"local":      {1, local, false, nil},
	} {
		tt.p.Name = "main"
		cfg := priced(tt.limit, tt.p)
		cfg.LLM.Embedding, cfg.Agent.ContextBudgetTokens = "main", 1000
		if tt.fallback {
			cfg.LLM.Primary, cfg.LLM.Fallback = "other", []string{"main"}
		}
		k := &inspector{c: cfg}
		k.models()
		if len(k.found.Faults) != len(tt.want) {
			t.Errorf("%s: %v, want %d findings", name, k.found.Faults, len(tt.want))
			continue
		}
		all := k.found.Faults.Error()
		for _, want := range tt.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q is not found in %s", name, want, all)
			}
		}
	}
}

// TestTightLimits: limits of the configuration below what is set aside for one answer are findings.
func TestTightLimits(t *testing.T) {
	t.Parallel()
	in, out := 1.0, 10.0
	p := config.Provider{Name: "main", Type: "openai", BaseURL: "https://models.example.com/v1", Model: "our-model", MaxTokens: 4096, ContextTokens: 200_000, InputUSDPerMTok: &in, OutputUSDPerMTok: &out}
	cfg := priced(0.01, p)
	cfg.Agent.ContextBudgetTokens = 10_000
	cfg.Telegram.Chats = map[string]config.Chat{"-100": {Quota: &config.Limits{TokensPerMonth: 100}}}
	k := &inspector{c: cfg}
	k.models()
	if all := k.found.Warnings.Error(); len(k.found.Warnings) != 2 || !strings.Contains(all, "quotas.user.usd_per_day: $0.01 a day") || !strings.Contains(all, "-100") {
		t.Errorf("found %s", all)
	}
}
