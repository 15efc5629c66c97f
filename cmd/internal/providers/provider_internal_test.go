package providers

import (
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestAddress: Ollama's API is below /v1, also where its address is written without.
func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, url, want string }{
		{"ollama", "http://localhost:11434", "http://localhost:11434/v1"},
		{"ollama", "http://localhost:11434/", "http://localhost:11434/v1"},
		{"ollama", "http://localhost:11434/v1", "http://localhost:11434/v1"},
		{"ollama", "https://x.example/ollama", "https://x.example/ollama"},
		{"openai", "https://x.example", "https://x.example"},
	} {
		if got := Address(config.Provider{Type: c.kind, BaseURL: c.url}); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.url, got, c.want)
		}
	}
}
