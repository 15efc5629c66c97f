package dialect_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// TestSizesOf: each server says the size that counts in a place of its own: what is loaded, not what the model was
// trained for.
func TestSizesOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		server, model, answer string
		listing, want         int
		output                int
	}{
		{"llamacpp", "m", `{"default_generation_settings":{"n_ctx":8192},"meta":{"n_ctx_train":131072}}`, 0, 8192, 0},
		{"llamacpp", "m", `{"data":[{"id":"m","meta":{"n_ctx_train":131072}}]}`, 0, 0, 0},
		{"llamacpp", "m", `{"max_total_tokens":4096}`, 1, 4096, 0},
		{"lmstudio", "m", `{"models":[{"key":"m","max_context_length":131072,"loaded_instances":[{"config":{"context_length":4096}}]}]}`, 0, 4096, 0},
		{"lmstudio", "m", `{"models":[{"key":"m","max_context_length":131072,"loaded_instances":[]}]}`, 0, 0, 0},
		{"lmstudio", "m", `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":8192}]}`, 1, 8192, 0},
		{"ollama", "m", `{"models":[{"name":"o","context_length":1},{"name":"m:latest","context_length":4096}]}`, 0, 4096, 0},
		{"openrouter", "a/m", `{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":64000}}]}`, 0, 64_000, 0},
		{"openrouter", "a/m", `{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":null}}]}`, 0, 200_000, 0},
		{"together", "m", `[{"id":"m","context_length":32768}]`, 0, 32_768, 0},
		{"mistral", "m", `{"data":[{"id":"m","max_context_length":131072}]}`, 0, 131_072, 0},
		{"groq", "m", `{"data":[{"id":"m","context_window":131072}]}`, 0, 131_072, 0},
		{"vllm", "m", `{"data":[{"id":"m","max_model_len":16384}]}`, 0, 16_384, 0},
		{"litellm", "m", `{"data":[{"model_name":"m","model_info":{"max_input_tokens":9000}}]}`, 0, 9000, 0},
		{"anthropic", "m", `{"data":[{"id":"m","max_input_tokens":null}]}`, 0, 0, 0},
		{"vllm", "m", `{"data":[{"id":"m","max_model_len":-1}]}`, 0, 0, 0},
		{"vllm", "m", `{"data":[{"id":"m","max_model_len":"many"}]}`, 0, 0, 0},
		{"vllm", "m", `{"data":null}`, 0, 0, 0},
		{"vllm", "m", `<html>`, 0, 0, 0},
		{"openrouter", "a/m", `{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":64000,"max_completion_tokens":32000}}]}`, 0, 64_000, 32_000},
		{"anthropic", "m", `{"data":[{"id":"m","max_input_tokens":200000,"max_tokens":64000}]}`, 0, 200_000, 64_000},
		{"anthropic", "m", `{"data":[{"id":"m","max_input_tokens":null,"max_tokens":64000}]}`, 0, 0, 64_000},
		{"gemini", "gemini-2.5-flash", `{"models":[{"name":"models/gemini-2.5-flash-lite","inputTokenLimit":1},{"name":"models/gemini-2.5-flash","inputTokenLimit":1048576,"outputTokenLimit":65536}]}`, 0, 1_048_576, 65_536},
		{"gemini", "models/gemini-2.5-flash", `{"models":[{"name":"models/gemini-2.5-flash","inputTokenLimit":1048576,"outputTokenLimit":65536}]}`, 0, 1_048_576, 65_536},
		{"litellm", "m", `{"data":[{"model_name":"m","model_info":{"max_input_tokens":9000,"max_output_tokens":4000}}]}`, 0, 9000, 4000},
		{"", "gpt-5", `{"data":[{"id":"gpt-5","capabilities":{"limits":{"max_context_window_tokens":264000,"max_prompt_tokens":128000,"max_output_tokens":64000}}}]}`, 0, 128_000, 64_000},
		{"", "m", `{"data":[{"id":"m","max_model_len":16384}]}`, 0, 16_384, 0},
		{"", "m", `[{"id":"m","context_length":16384}]`, 0, 16_384, 0},
		{"", "m", `{"data":[{"id":"m"}]}`, 0, 0, 0},
	} {
		d, _ := dialect.Named(tt.server)
		want := dialect.Sizes{Window: tt.want, Output: tt.output}
		if got := d.Listings()[tt.listing].SizesOf([]byte(tt.answer), tt.model); got != want {
			t.Errorf("%s, %s: %+v, want %+v", tt.server, tt.answer, got, want)
		}
	}
	if d, _ := dialect.Named("openai"); len(d.Listings()) > 0 {
		t.Error("a server that lists no sizes is asked")
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

// FuzzSizesOf: an answer is text of a server.
func FuzzSizesOf(f *testing.F) {
	f.Add([]byte(`{"models":[{"key":"m","loaded_instances":[{"config":{"context_length":4096}}]}]}`))
	d, _ := dialect.Named("lmstudio")
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, l := range d.Listings() {
			if s := l.SizesOf(answer, "m"); s.Window < 0 || s.Output < 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
