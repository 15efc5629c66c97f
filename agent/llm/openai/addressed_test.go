package openai_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// TestAddresses: each form of an address is asked where its server has the API, with the key where the server wants it.
// z.ai's addresses have a version of their own and get no other.
func TestAddresses(t *testing.T) {
	t.Parallel()
	azure, ok := dialect.Named("azure")
	if !ok {
		t.Fatal("no row azure")
	}
	for base, tt := range map[string]struct {
		d                        dialect.Dialect
		path, query, bearer, key string
	}{
		"/v1/":                      {dialect.Dialect{}, "/v1/models", "", "Bearer k", ""},
		"/api/paas/v4":              {dialect.Dialect{}, "/api/paas/v4/models", "", "Bearer k", ""},
		"/openai/v1":                {azure, "/openai/v1/models", "", "", "k"},
		"/openai/v1?api-version=v2": {azure, "/openai/v1/models", "api-version=v2", "", "k"},
		"/openai/deployments/mine?api-version=2024-10-21": {azure, "/openai/deployments/mine/models", "api-version=2024-10-21", "", "k"},
	} {
		var got *http.Request
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			_, _ = w.Write([]byte(`{"data":[]}`))
		}))
		t.Cleanup(s.Close)
		p, err := openai.New(openai.Options{Name: "main", BaseURL: s.URL + base, Key: "k", Model: "m", Dialect: tt.d, HTTPClient: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Models(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got.URL.Path != tt.path || got.URL.RawQuery != tt.query || got.Header.Get("Authorization") != tt.bearer || got.Header.Get("Api-Key") != tt.key {
			t.Errorf("%s: %s, %v", base, got.URL, got.Header)
		}
		if _, err := p.Chat(t.Context(), hi(), nil); err == nil {
			t.Error("nothing is an answer")
		}
		if got.URL.RawQuery != tt.query || got.Header.Get("Authorization") != tt.bearer || got.Header.Get("Api-Key") != tt.key {
			t.Errorf("%s, a turn: %s, %v", base, got.URL, got.Header)
		}
	}
	for _, base := range []string{"https://h/v1?key=secret", "https://h/v1?api-version=1&key=secret", "https://h/v1?api-version="} {
		if _, err := openai.New(openai.Options{Name: "main", BaseURL: base, Model: "m"}); err == nil {
			t.Errorf("%s is taken", base)
		}
	}
}
