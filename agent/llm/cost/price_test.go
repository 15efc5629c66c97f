package cost_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

// now is when the tables were made.
func now() time.Time { return time.Date(2026, 11, 6, 12, 0, 0, 0, time.UTC) }

const (
	openai     = "https://api.openai.com/v1"
	anthropic  = "https://api.anthropic.com"
	openrouter = "https://openrouter.ai/api/v1"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base, model string
		input       float64 // 0 = unknown
	}{
		{"", "gpt-4o", 2.5},
		{"", "gpt-4o-2024-08-06", 2.5},
		{"", "GPT-4o-mini", 0.15},
		{"", "openai/gpt-4o-mini", 0.15},
		{"", "gpt-4", 30},
		{"", "o3", 2},
		{"", "o3-pro", 20},
		{"", "o3-mini", 1.1},
		{"", "claude-opus-4-20250514", 15},
		{"", "claude-opus-4-1-20250805", 15},
		{"", "claude-opus-4-5-20251101", 5},
		{"", "claude-opus-4@20250514", 15},
		{"", "claude-3-5-haiku-latest", 0.8},
		{"", "claude-sonnet-5", 2},
		{"", "claude-sonnet-7", 0},
		{"", "claude-haiku-5-5", 0.5},
		{"", "gpt-6.1-sol", 2},
		{"", "gpt-9-sol", 0},
		{"", "gemini-2.5-flash-lite", 0.1},
		{"", "models/gemini-2.5-flash", 0.3},
		{"", "llama3.2", 0},
		{"", "x", 0},
		{"", "", 0},
		{openai, "gpt-6.1-terra-2026-11-02", 1},
		{openai, "claude-sonnet-5", 0}, // not there
		{anthropic, "claude-mythos-5", 10},
		{openrouter, "openai/gpt-6.1-sol", 2},
		{openrouter, "anthropic/claude-mythos-5-1", 10},
		{openrouter, "somebody/unknown", 0},
		{"https://mine.openai.azure.com/openai/v1", "gpt-4o", 2.5},
		{"https://mine.openai.azure.com/openai/v1", "my-deployment", 0},
		{"https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3.6-flash", 1},
		{"https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen3.6-flash", 1},
		{"https://models.example.com/v1", "gpt-4o", 2.5},
		{"https://models.example.com/v1", "our-model", 0},
		{"https://api.deepseek.com", "deepseek-chat", 0.27},
	} {
		tariff, ok := cost.TariffOf(tt.base, tt.model)
		input, cached, output := tariff.Highest()
		if rate := tariff.At(now()); rate.Input != nil {
			input = rate.Input.For(1000)
		}
		if ok != (tt.input > 0) || input != tt.input {
			t.Errorf("%q at %q costs %v, %v; want %v", tt.model, tt.base, input, ok, tt.input)
		}
		if ok && (cached <= 0 || output < input) {
			t.Errorf("%q costs %v, %v and %v: that cannot be", tt.model, input, cached, output)
		}
	}
}

// TestCost: what is cached, what is written into the cache, long prompts, dates and times of the day have prices of their
// own.
func TestCost(t *testing.T) {
	t.Parallel()
	fixed := cost.FixedTariff(2, 0.5, 3, 8)
	var free cost.Tariff
	sol, known := cost.TariffOf(openai, "gpt-6-sol")
	terra, dated := cost.TariffOf(openai, "gpt-5.6-terra")
	if !known || !dated {
		t.Fatal("models of the table are unknown")
	}
	july := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		tariff  cost.Tariff
		at      time.Time
		u       llm.Usage
		written int
		want    float64
	}{
		"nothing":              {free, now(), llm.Usage{Input: 1e6, Output: 1e6}, 0, 0},
		"plain":                {fixed, now(), llm.Usage{Input: 1e6, Output: 1e6}, 0, 10},
		"cached":               {fixed, now(), llm.Usage{Input: 1e6, CachedInput: 400_000}, 0, 1.4},
		"written":              {fixed, now(), llm.Usage{Input: 1e6, CachedInput: 400_000}, 600_000, 2},
		"more than all cached": {fixed, now(), llm.Usage{Input: 1e6, CachedInput: 5e6}, 5e6, 0.5},
		"a short prompt":       {sol, now(), llm.Usage{Input: 100_000, Output: 1000}, 0, 0.21},
		"a long prompt":        {sol, now(), llm.Usage{Input: 300_000, Output: 1000}, 0, 1.215},
		"before a date":        {terra, july, llm.Usage{Input: 100_000}, 0, 0.25},
		"after a date":         {terra, now(), llm.Usage{Input: 100_000}, 0, 0.2},
	} {
		if got := tt.tariff.Cost(tt.at, tt.u, tt.written); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if most := tt.tariff.Most(tt.u); most < tt.want-1e-9 {
			t.Errorf("%s: at most %v, but it costs %v", name, most, tt.want)
		}
	}
	if !free.Free() || fixed.Free() || sol.Free() {
		t.Error("what costs nothing is mistaken")
	}
}

func TestOther(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]float64{
		"whisper-1": 0.006, "openai/gpt-4o-transcribe": 0.006, "gpt-4o-transcribe-diarize": 0.006, "gpt-4o-mini-transcribe-2025-12-15": 0.003,
		"whisper": 0, "whisper-large-v4": 0, "": 0, "whisper-large-v3": 0.111 / 60, "whisper-large-v3-turbo": 0.04 / 60, "gpt-4o": 0,
	} {
		if got, ok := cost.TranscriptionPrice("", name, now()); got != want || ok != (want > 0) {
			t.Errorf("a minute of %q costs %v, %v; want %v", name, got, ok, want)
		}
	}
	for name, want := range map[string]float64{
		"text-embedding-3-small": 0.02, "openai/text-embedding-3-large": 0.13, "text-embedding-4-small": 0, "nomic-embed-text": 0,
		"gemini-embedding-001": 0.15, "mistral-embed": 0.1,
	} {
		if got, ok := cost.EmbeddingPrice("", name, now()); got != want || ok != (want > 0) {
			t.Errorf("%q costs %v, %v; want %v", name, got, ok, want)
		}
	}
}

func TestSizesOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base, model string
		want        cost.Sizes
	}{
		{openai, "gpt-4o", cost.Sizes{Window: 128_000, Output: 16_384}},
		{openai, "gpt-6.1-sol-2026-11-02", cost.Sizes{Window: 1_050_000, Output: 128_000}},
		{"", "gpt-3.5-turbo", cost.Sizes{Window: 16_385, Output: 4096}},
		{anthropic, "claude-3-haiku-20240307", cost.Sizes{Window: 200_000, Output: 4096}},
		{"http://localhost:8000/v1", "our-model", cost.Sizes{}},
	} {
		if got := cost.SizesOf(tt.base, tt.model); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.model, got, tt.want)
		}
	}
}

// BenchmarkOf measures the first question about a model, and BenchmarkOfKnown each further one.
func BenchmarkOf(b *testing.B) {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		cost.TariffOf(openrouter, "somebody/unknown-"+strconv.Itoa(n))
	}
}

func BenchmarkOfKnown(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		cost.TariffOf(openrouter, "somebody/unknown")
	}
}
