package providers

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// priced returns a configuration with providers and a limit of USD a day for everybody; 0 = none.
func priced(limit float64, p ...config.Provider) *config.Config {
	c := &config.Config{}
	c.Quotas.User.USDPerDay, c.LLM.Providers, c.LLM.Primary = limit, p, "main"
	return c
}

// TestPrices: what is configured comes before the tables; what neither says is unknown, and never nothing.
func TestPrices(t *testing.T) {
	t.Parallel()
	free, dear := 0.0, 200.0
	const vendor, own = "https://api.openai.com/v1", "http://localhost:8000/v1"
	for name, tt := range map[string]struct {
		p     config.Provider
		want  float64 // of a million tokens read, of which half are cached, and as many written
		known bool
	}{
		"table":             {config.Provider{Type: "openai", BaseURL: vendor, Model: "gpt-4o"}, 11.875, true},
		"local":             {config.Provider{Type: "ollama", Model: "gpt-4o"}, 0, true},
		"free":              {config.Provider{Type: "openai", Model: "x", InputUSDPerMTok: &free, OutputUSDPerMTok: &free}, 0, true},
		"anthropic's cache": {config.Provider{Type: "anthropic", Model: "x", InputUSDPerMTok: &dear, OutputUSDPerMTok: &dear}, 310, true},
		"unknown":           {config.Provider{Type: "openai", BaseURL: own, Model: "x"}, 0, false},
		"half known":        {config.Provider{Type: "openai", BaseURL: own, Model: "x", InputUSDPerMTok: &dear}, 200, false},
		"another output":    {config.Provider{Type: "openai", BaseURL: vendor, Model: "gpt-4o", OutputUSDPerMTok: &dear}, 201.875, true},
	} {
		tt.p.Name = "main"
		tariff, known := TariffOf(&tt.p)
		if got := tariff.Cost(time.Now(), llm.Usage{Input: 1e6, CachedInput: 5e5, Output: 1e6}, 0); known != tt.known || math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, known, tt.want, tt.known)
		}
	}
	c := New(Options{Config: priced(1,
		config.Provider{Name: "main", Type: "openai", Model: "gpt-4o", MaxTokens: 5},
		config.Provider{Name: "spare", Type: "anthropic", Model: "claude-sonnet-5", MaxTokens: 7},
		config.Provider{Name: "own", Type: "openai", BaseURL: own, Model: "x", MaxTokens: 6},
	), Log: zerolog.Nop(), Now: time.Now})
	if got := c.Offers().MostCost(llm.Usage{Input: 1e6, Output: 1e6}); got != 12.5 { // gpt-4o; claude-sonnet-5 would be 2.5 + 10
		t.Errorf("most %v", got)
	}
	if got := c.Offers().Unpriced(); len(got) != 1 || got["own"] != "x" {
		t.Errorf("unpriced %v", got)
	}
	if got, _ := c.Offers().MostOf(llm.Usage{Input: 1}); got != 7 {
		t.Errorf("longest answer %d", got)
	}
}

// TestMostOfUnlimitedAnswer: what is set aside for a call is the model's longest answer where no limit is sent, by the
// dialect or by what was learnt, and what was asked for or configured else.
func TestMostOfUnlimitedAnswer(t *testing.T) {
	t.Parallel()
	in, out := 1.0, 10.0
	usd := func(input, output int) float64 { return (float64(input)*in + float64(output)*out) / 1e6 }
	c := New(Options{Config: priced(1,
		config.Provider{Name: "main", Type: "openai", Model: "gpt-4o", MaxTokens: 4096, InputUSDPerMTok: &in, OutputUSDPerMTok: &out},
		config.Provider{Name: "own", Type: "openai", BaseURL: "https://models.example.com/v1", Model: "our-model", MaxTokens: 100, InputUSDPerMTok: &in, OutputUSDPerMTok: &out},
	), Log: zerolog.Nop(), Now: time.Now})
	check := func(what string, asked llm.Usage, output int, want float64) {
		t.Helper()
		if got, cost := c.Offers().MostOf(asked); got != output || math.Abs(cost-want) > 1e-9 {
			t.Errorf("%s: %d tokens, %v USD; want %d, %v", what, got, cost, output, want)
		}
	}
	check("as configured", llm.Usage{Input: 1000}, 4096, usd(1000, 4096))
	check("as asked for", llm.Usage{Input: 1000, Output: 50}, 50, usd(1000, 50))
	longest := cost.SizesOf(Address(c.cfg.LLM.Providers[0]), "gpt-4o").Output
	if longest <= 4096 {
		t.Fatalf("gpt-4o writes %d tokens", longest)
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		c.Learnt.Update("main", "gpt-4o", func(l *dialect.Learnt) { l.Omit = []string{"user", name} })
		check("no limit is sent", llm.Usage{Input: 1000, Output: 50}, 50, usd(1000, longest))
	}
	c.Learnt.Update("main", "gpt-4o", func(l *dialect.Learnt) { l.Omit = nil })
	c.Learnt.Update("own", "our-model", func(l *dialect.Learnt) { l.Omit = []string{"max_tokens"} })
	check("nobody knows the longest answer", llm.Usage{Input: 1000, Output: 50}, 50, usd(1000, 50))
	c.Learnt.Update("own", "our-model", func(l *dialect.Learnt) { l.Window = 32_768 })
	check("what is left of the window", llm.Usage{Input: 1000, Output: 50}, 50, usd(1000, 31_768))
	check("nothing is left of it", llm.Usage{Input: 40_000, Output: 50}, 50, usd(40_000, 50))
}

// TestTightLimits: a limit below what is set aside for one answer lets no turn begin, so it is a finding with both figures
// and the cures, of the configuration and of what was set in the chat.
func TestTightLimits(t *testing.T) {
	t.Parallel()
	in, out := 1.0, 10.0
	p := config.Provider{Name: "main", Type: "openai", BaseURL: "https://models.example.com/v1", Model: "our-model", MaxTokens: 4096, ContextTokens: 200_000, InputUSDPerMTok: &in, OutputUSDPerMTok: &out}
	day, month := quota.Of{Unit: quota.USD, Window: quota.Day}, quota.Of{Unit: quota.USD, Window: quota.Month}
	for name, tt := range map[string]struct {
		of    quota.Of
		limit int64
		omit  string // field that the server was found not to take
		want  []string
	}{
		"too little a day":          {day, 40_000, "", []string{"$0.04 a day", "$0.04096", "our-model", "(4096 tokens)", "; raise it, or lower max_tokens"}},
		"too little a month":        {month, 40_959, "", []string{"a month"}},
		"just enough":               {day, 40_960, "", nil},
		"none":                      {day, 0, "", nil},
		"an unlimited answer":       {day, 1_000_000, "max_tokens", []string{"$1 a day", "$2", "(200000 tokens)", "takes no limit", "choose a model whose answers can be limited"}},
		"enough for it":             {day, 2_000_000, "max_tokens", nil},
		"fewer tokens than answers": {quota.Of{Unit: quota.Tokens, Window: quota.Day}, 4000, "", []string{"4000 tokens a day", "the 4096", "lower max_tokens"}},
		"enough tokens":             {quota.Of{Unit: quota.Tokens, Window: quota.Day}, 4096, "", nil},
		"turns":                     {quota.Of{Unit: quota.Turns, Window: quota.Day}, 1, "", nil},
	} {
		c := New(Options{Config: priced(0, p), Log: zerolog.Nop(), Now: time.Now})
		if tt.omit != "" {
			c.Learnt.Update("main", "our-model", func(l *dialect.Learnt) { l.Omit = []string{tt.omit} })
		}
		found := c.SetLimits([]quota.SetLimit{{Level: "user/telegram:7", Of: tt.of, Limit: tt.limit}})
		all := strings.Join(found, "\n")
		if len(found) > 1 || (len(found) == 1) != (len(tt.want) > 0) {
			t.Errorf("%s: %s", name, all)
		}
		for _, want := range append(tt.want, all[:min(len(all), 6)]) {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q is not in %s", name, want, all)
			}
		}
	}
}

// TestOtherPrices: recordings and embeddings are priced by the same rules.
func TestOtherPrices(t *testing.T) {
	t.Parallel()
	free := 0.0
	const vendor = "https://api.openai.com/v1"
	for name, tt := range map[string]struct {
		p              config.Provider
		minute, tokens spend.Cost
	}{
		"table":      {config.Provider{Type: "openai", BaseURL: vendor, TranscriptionModel: "whisper-1", EmbeddingModel: "text-embedding-3-small"}, spend.Cost{USD: 0.006}, spend.Cost{USD: 0.02}},
		"configured": {config.Provider{Type: "openai", TranscriptionModel: "whisper-1", TranscriptionUSDPerMinute: &free, EmbeddingModel: "text-embedding-3-large"}, spend.Cost{}, spend.Cost{USD: 0.13}},
		"local":      {config.Provider{Type: "ollama", TranscriptionModel: "whisper-1", EmbeddingModel: "x"}, spend.Cost{}, spend.Cost{}},
		"unknown":    {config.Provider{Type: "openai", BaseURL: vendor, TranscriptionModel: "x", EmbeddingModel: "y"}, spend.Cost{Unpriced: "x"}, spend.Cost{Unpriced: "y"}},
		"unused":     {config.Provider{Type: "openai", BaseURL: vendor}, spend.Cost{}, spend.Cost{}},
	} {
		c := New(Options{Config: priced(0, tt.p), Log: zerolog.Nop(), Now: time.Now})
		if got := c.MinuteCost(&tt.p); got != tt.minute {
			t.Errorf("%s: a minute costs %v, want %v", name, got, tt.minute)
		}
		if got := c.EmbeddingCost(&tt.p); got != tt.tokens {
			t.Errorf("%s: embeddings cost %v, want %v", name, got, tt.tokens)
		}
	}
}
