package adapter_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/llm/adapter"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 10012 tokens.": 8192,
		"prompt is too long: 250000 tokens > 200000 maximum":                                                   200_000,
		"the request exceeds the available context size (4096 tokens), try increasing it":                      4096,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":              1_048_576,
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000":                          200_000,
		"Your input exceeds the context window of this model.":                                                 0,
		"maximum context length is 128,000 tokens":                                                             128_000,
		"maximum context length is 99999999999999999999 tokens":                                                0,
		"": 0,
	} {
		if got := adapter.Window(message); got != want {
			t.Errorf("%q: %d, want %d", message, got, want)
		}
	}
}

func FuzzWindow(f *testing.F) {
	f.Add("maximum context length is 8192 tokens")
	f.Add("> 1, maximum")
	f.Fuzz(func(t *testing.T, message string) {
		if n := adapter.Window(message); n < 0 || n >= 1<<30 {
			t.Errorf("%q: %d", message, n)
		}
	})
}
