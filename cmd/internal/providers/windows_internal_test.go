package providers

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestWindows: a window is the configured one, else what the server lists, else what the table says; a server is asked
// once, after its first use, and one that cannot be asked changes nothing.
func TestWindows(t *testing.T) {
	t.Parallel()
	asked, lists := 0, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			lists++
			_, _ = w.Write([]byte(`{"data":[{"id":"m"},{"id":"proxied","capabilities":{"limits":{"max_prompt_tokens":64000,"max_output_tokens":500}}}]}`))
			return
		}
		asked++
		if r.URL.Path != "/props" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"default_generation_settings":{"n_ctx":8192},"meta":{"n_ctx_train":131072}}`))
	}))
	t.Cleanup(s.Close)
	cfg := priced(
		0,
		config.Provider{Name: "main", Type: "openai", Preset: "llamacpp", BaseURL: s.URL + "/v1", Model: "m", MaxTokens: 1024},
		config.Provider{Name: "set", Type: "openai", Preset: "llamacpp", BaseURL: s.URL + "/v1", Model: "m", MaxTokens: 1024, ContextTokens: 16_384},
		config.Provider{Name: "table", Type: "openai", BaseURL: "https://api.openai.com/v1", Model: "gpt-4", MaxTokens: 1024},
		config.Provider{Name: "long answers", Type: "openai", BaseURL: "https://api.openai.com/v1", Model: "gpt-4", MaxTokens: 100_000},
		config.Provider{Name: "proxied", Type: "openai", BaseURL: s.URL + "/v1", Model: "proxied", MaxTokens: 1024},
		config.Provider{Name: "unknown", Type: "openai", BaseURL: s.URL + "/v1", Model: "m", MaxTokens: 1024},
	)
	c := New(Options{Config: cfg, Log: zerolog.Nop(), Now: time.Now})
	provider, err := c.Route()
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]int) {
		t.Helper()
		for name, size := range want {
			if got := llm.WindowFor(provider, name); got != size {
				t.Errorf("%s: window of %s is %d, want %d", when, name, got, size)
			}
		}
	}
	check("at the start", map[string]int{"main": 0, "set": 16_384, "table": 8192, "long answers": leastWindow, "unknown": 0})
	for _, p := range cfg.LLM.Providers {
		c.unlisted.note(p.Name)
		c.unlisted.note(p.Name)
	}
	c.unlisted.note("none of them")
	for len(c.unlisted.queued) > 0 {
		c.askWindow(t.Context(), <-c.unlisted.queued)
	}
	check("after the first use", map[string]int{"main": 8192, "set": 16_384, "unknown": 0, "proxied": 64_000})
	if asked != 2 || lists != 2 {
		t.Errorf("asked %d and %d times", asked, lists)
	}
	for name, want := range map[string]int{"proxied": 500, "unknown": 0, "main": 8192} {
		i := slices.IndexFunc(cfg.LLM.Providers, func(p config.Provider) bool { return p.Name == name })
		if got := c.mostWritten(&cfg.LLM.Providers[i], 0); got != want {
			t.Errorf("the longest answer of %s is %d, want %d", name, got, want)
		}
	}
}
