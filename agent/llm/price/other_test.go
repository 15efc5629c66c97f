package price_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/llm/price"
)

func TestOther(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]float64{
		"whisper-1": 0.006, "openai/gpt-4o-transcribe": 0.006, "gpt-4o-transcribe-diarize": 0.006, "gpt-4o-mini-transcribe-2025-12-15": 0.003,
		"whisper": 0, "whisper-large-v4": 0, "": 0,
	} {
		if got, ok := price.OfTranscription(name); got != want || ok != (want > 0) {
			t.Errorf("a minute of %q costs %v, %v; want %v", name, got, ok, want)
		}
	}
	for name, want := range map[string]float64{
		"text-embedding-3-small": 0.02, "openai/text-embedding-3-large": 0.13, "text-embedding-4-small": 0, "nomic-embed-text": 0,
	} {
		if got, ok := price.OfEmbedding(name); got != want || ok != (want > 0) {
			t.Errorf("%q costs %v, %v; want %v", name, got, ok, want)
		}
	}
	if price.HighestTranscription() != 0.006 || price.HighestEmbedding() != 0.15 {
		t.Errorf("highest %v and %v", price.HighestTranscription(), price.HighestEmbedding())
	}
}
