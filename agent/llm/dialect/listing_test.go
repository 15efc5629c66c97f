package dialect_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// TestWindowOf: each server says the size that counts in a place of its own: what is loaded, not what the model was
// trained for.
func TestWindowOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		server, model, answer string
		listing, want         int
	}{
		{"llamacpp", "m", `{"default_generation_settings":{"n_ctx":8192},"meta":{"n_ctx_train":131072}}`, 0, 8192},
		{"llamacpp", "m", `{"data":[{"id":"m","meta":{"n_ctx_train":131072}}]}`, 0, 0},
		{"llamacpp", "m", `{"max_total_tokens":4096}`, 1, 4096},
		{"lmstudio", "m", `{"models":[{"key":"m","max_context_length":131072,"loaded_instances":[{"config":{"context_length":4096}}]}]}`, 0, 4096},
		{"lmstudio", "m", `{"models":[{"key":"m","max_context_length":131072,"loaded_instances":[]}]}`, 0, 0},
		{"lmstudio", "m", `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":8192}]}`, 1, 8192},
		{"ollama", "m", `{"models":[{"name":"o","context_length":1},{"name":"m:latest","context_length":4096}]}`, 0, 4096},
		{"openrouter", "a/m", `{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":64000}}]}`, 0, 64_000},
		{"openrouter", "a/m", `{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":null}}]}`, 0, 200_000},
		{"together", "m", `[{"id":"m","context_length":32768}]`, 0, 32_768},
		{"mistral", "m", `{"data":[{"id":"m","max_context_length":131072}]}`, 0, 131_072},
		{"groq", "m", `{"data":[{"id":"m","context_window":131072}]}`, 0, 131_072},
		{"vllm", "m", `{"data":[{"id":"m","max_model_len":16384}]}`, 0, 16_384},
		{"litellm", "m", `{"data":[{"model_name":"m","model_info":{"max_input_tokens":9000}}]}`, 0, 9000},
		{"anthropic", "m", `{"data":[{"id":"m","max_input_tokens":null}]}`, 0, 0},
		{"vllm", "m", `{"data":[{"id":"m","max_model_len":-1}]}`, 0, 0},
		{"vllm", "m", `{"data":[{"id":"m","max_model_len":"many"}]}`, 0, 0},
		{"vllm", "m", `{"data":null}`, 0, 0},
		{"vllm", "m", `<html>`, 0, 0},
	} {
		d, _ := dialect.Named(tt.server)
		if got := d.Listings()[tt.listing].WindowOf([]byte(tt.answer), tt.model); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.server, tt.answer, got, tt.want)
		}
	}
	var unknown dialect.Dialect
	if len(unknown.Listings()) > 0 {
		t.Error("an unknown server is asked")
	}
}

func TestListingAddress(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/models": "http://h:1/v1/models", "^/props": "http://h:1/props"} {
		l := dialect.Listing{Path: path}
		if got, err := l.Address("http://h:1/v1/"); err != nil || got != want {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
}

// FuzzWindowOf: an answer is text of a server.
func FuzzWindowOf(f *testing.F) {
	f.Add([]byte(`{"models":[{"key":"m","loaded_instances":[{"config":{"context_length":4096}}]}]}`))
	d, _ := dialect.Named("lmstudio")
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, l := range d.Listings() {
			if n := l.WindowOf(answer, "m"); n < 0 {
				t.Errorf("%d", n)
			}
		}
	})
}
