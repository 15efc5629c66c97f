package wire_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// TestUnreached: an error names the server that was asked, and why it took no connection; for both adapters.
func TestUnreached(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(answer(http.StatusUnauthorized, `{"error":{"message":"no"}}`))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(answer(http.StatusOK, ""))
	t.Cleanup(secure.Close)
	closed := closedAddress(t)
	dial := func(err error) *http.Transport {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}}
	}
	through := func(_ *http.Request) (*url.URL, error) { return url.Parse("http://" + closed) }
	for name, tt := range map[string]struct {
		base string
		way  *http.Transport
		want llm.Unreached
	}{
		"no such name":         {"https://api.acme.example", dial(&net.DNSError{Err: "no such host", IsNotFound: true}), llm.UnreachedName},
		"no resolver":          {"https://api.acme.example", dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), llm.UnreachedName},
		"no route":             {"https://api.acme.example", dial(errors.New("network is unreachable")), llm.UnreachedRoute},
		"nothing listens":      {"http://" + closed, &http.Transport{}, llm.UnreachedRefused},
		"a foreign authority":  {secure.URL, &http.Transport{}, llm.UnreachedSecure},
		"no TLS":               {strings.Replace(plain.URL, "http:", "https:", 1), &http.Transport{}, llm.UnreachedSecure},
		"the proxy is missing": {"https://api.acme.example", &http.Transport{Proxy: through}, llm.UnreachedProxy},
		"it answers":           {plain.URL, &http.Transport{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.way.DisableKeepAlives = true
			client := &http.Client{Transport: tt.way}
			first, err := openai.New(openai.Options{Name: "main", BaseURL: tt.base + "/v1/", Model: "m", HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			second, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: tt.base, Key: "k", Model: "m", HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			_, host, _ := strings.Cut(tt.base, "://")
			for vendor, p := range map[string]llm.Provider{"openai": first, "anthropic": second} {
				_, err := p.Chat(t.Context(), &llm.Request{MaxTokens: 9, Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}, nil)
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Server != host || e.Unreached != tt.want {
					t.Errorf("%s: %+v, want %q at %s", vendor, e, tt.want, host)
				}
			}
		})
	}
}
