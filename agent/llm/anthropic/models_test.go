package anthropic_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/anthropic"
)

// TestModels: the list is asked for where Anthropic has it, with its headers, however the address is written.
func TestModels(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("X-Api-Key") != "sk-key" || r.Header.Get("Anthropic-Version") == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(`{"data":[{"type":"model","id":"claude-b"},{"type":"model","id":"claude-a"}],"has_more":false}`))
	}))
	defer s.Close()
	for _, address := range []string{s.URL, s.URL + "/", s.URL + "/v1"} {
		p, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: address, Key: "sk-key", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Models(t.Context()); err != nil || !slices.Equal(got, []string{"claude-a", "claude-b"}) {
			t.Errorf("%s: %v %v", address, got, err)
		}
	}
}
