package app

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/price"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestPrices: what is configured comes before the table; what nobody knows is counted at the highest known price where
// money is limited, and as nothing elsewhere.
func TestPrices(t *testing.T) {
	t.Parallel()
	free, dear := 0.0, 200.0
	cfg := func(limit float64, p ...config.Provider) *config.Config {
		c := &config.Config{}
		c.Quotas.User.USDPerDay, c.LLM.Providers, c.LLM.Primary = limit, p, "main"
		return c
	}
	for _, tt := range []struct {
		name  string
		cfg   *config.Config
		want  price.Price
		warns bool
	}{
		{"table", cfg(1, config.Provider{Name: "main", Type: "openai", Model: "gpt-4o"}), price.Price{Input: 2.5, Cached: 1.25, Output: 10}, false},
		{"local", cfg(1, config.Provider{Name: "main", Type: "ollama", Model: "gpt-4o"}), price.Price{}, false},
		{"free", cfg(1, config.Provider{Name: "main", Type: "openai", Model: "x", InputUSDPerMTok: &free, OutputUSDPerMTok: &free}), price.Price{}, false},
		{"anthropic's cache", cfg(1, config.Provider{Name: "main", Type: "anthropic", Model: "x", InputUSDPerMTok: &dear, OutputUSDPerMTok: &dear}), price.Price{Input: 200, Cached: 20, Output: 200}, false},
		{"unknown", cfg(1, config.Provider{Name: "main", Type: "openai", Model: "x"}), price.Highest(), true},
		{"half known", cfg(1, config.Provider{Name: "main", Type: "openai", Model: "x", InputUSDPerMTok: &dear}), price.Price{Input: 200, Cached: 200, Output: price.Highest().Output}, true},
		{"unknown, no limit", cfg(0, config.Provider{Name: "main", Type: "openai", Model: "x"}), price.Price{}, false},
	} {
		p := &tt.cfg.LLM.Providers[0]
		if got := countedAt(tt.cfg, p); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if got := unpriced(tt.cfg, p); (got != "") != tt.warns || (tt.warns && !strings.Contains(got, "input_usd_per_mtok")) {
			t.Errorf("%s: warns %q", tt.name, got)
		}
	}
	c := newCore(Options{Config: cfg(1,
		config.Provider{Name: "main", Type: "openai", Model: "gpt-4o", MaxTokens: 5},
		config.Provider{Name: "spare", Type: "anthropic", Model: "claude-sonnet-5", MaxTokens: 7},
	), Log: zerolog.Nop(), Now: time.Now})
	c.cfg.LLM.Fallback = []string{"spare"}
	if got := c.mostCost(llm.Usage{Input: 1e6, Output: 1e6}); got != 12.5 { // gpt-4o; claude-sonnet-5 would be 2.5 + 10
		t.Errorf("most %v", got)
	}
	if got := c.longestAnswer(); got != 7 {
		t.Errorf("longest answer %d", got)
	}
}

// TestOtherPrices: recordings and embeddings are priced by the same rules.
func TestOtherPrices(t *testing.T) {
	t.Parallel()
	free := 0.0
	limited, open := &config.Config{}, &config.Config{}
	limited.Quotas.Bot.USDPerMonth = 1
	for _, tt := range []struct {
		name   string
		cfg    *config.Config
		p      config.Provider
		minute float64
		tokens float64
	}{
		{"table", open, config.Provider{Type: "openai", TranscriptionModel: "whisper-1", EmbeddingModel: "text-embedding-3-small"}, 0.006, 0.02},
		{"configured", limited, config.Provider{Type: "openai", TranscriptionModel: "whisper-1", TranscriptionUSDPerMinute: &free, EmbeddingModel: "text-embedding-3-large"}, 0, 0.13},
		{"local", limited, config.Provider{Type: "ollama", TranscriptionModel: "whisper-1", EmbeddingModel: "x"}, 0, 0},
		{"unknown", limited, config.Provider{Type: "openai", TranscriptionModel: "x", EmbeddingModel: "x"}, price.HighestTranscription(), price.HighestEmbedding()},
		{"unknown, no limit", open, config.Provider{Type: "openai", TranscriptionModel: "x", EmbeddingModel: "x"}, 0, 0},
	} {
		if got := minuteAt(tt.cfg, &tt.p); got != tt.minute {
			t.Errorf("%s: a minute costs %v, want %v", tt.name, got, tt.minute)
		}
		if got := embeddingAt(tt.cfg, &tt.p); got != tt.tokens {
			t.Errorf("%s: embeddings cost %v, want %v", tt.name, got, tt.tokens)
		}
	}
}
