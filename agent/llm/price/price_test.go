package price_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/llm/price"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		input float64 // 0 = unknown
	}{
		{"gpt-4o", 2.5},
		{"gpt-4o-2024-08-06", 2.5},
		{"GPT-4o-mini", 0.15},
		{"openai/gpt-4o-mini", 0.15},
		{"gpt-4o-audio-preview", 0},
		{"gpt-4", 0},
		{"o3", 2},
		{"o3-pro", 0},
		{"o3-mini", 1.1},
		{"claude-opus-4-20250514", 15},
		{"claude-opus-4-1-20250805", 15},
		{"claude-opus-4-5-20251101", 5},
		{"claude-opus-4@20250514", 15},
		{"claude-3-5-haiku-latest", 0.8},
		{"claude-sonnet-5", 2},
		{"claude-sonnet-7", 0},
		{"gemini-2.5-flash-lite", 0.1},
		{"models/gemini-2.5-flash", 0.3},
		{"llama3.2", 0},
		{"", 0},
	} {
		got, ok := price.Of(tt.model)
		if ok != (tt.input > 0) || got.Input != tt.input {
			t.Errorf("%q costs %+v, %v; want %v", tt.model, got, ok, tt.input)
		}
		if ok && (got.Cached <= 0 || got.Cached > got.Input || got.Output < got.Input) {
			t.Errorf("%q costs %+v: that cannot be", tt.model, got)
		}
	}
	if high := price.Highest(); high.Input != 15 || high.Output != 120 {
		t.Errorf("highest %+v", high)
	}
}
