package openai

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// hostOf checks a base URL and returns its host and the version of the API that its query names, which Azure requires
// at the address of a deployment (…/openai/deployments/NAME?api-version=2024-10-21). Another query is refused, and the
// error does not repeat the URL: people put keys there.
func hostOf(base string) (host, version string, err error) {
	u, err := url.Parse(base)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil {
		query := u.Query()
		version = query.Get("api-version")
		if query.Del("api-version"); len(query) == 0 && (version != "" || u.RawQuery == "") {
			return u.Host, version, nil
		}
	}
	return "", "", errors.New(
		"base_url must look like https://host/v1, without user name and query (except Azure's api-version)",
	)
}

// addressedClient returns a client that puts the key and the version of the API where a server wants them.
func addressedClient(client *http.Client, d *dialect.Dialect, key Key, version string) *http.Client {
	if d.Auth != dialect.AuthAPIKey && version == "" {
		return client
	}
	base := client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	a := &addressing{base: base, version: version}
	if d.Auth == dialect.AuthAPIKey {
		a.key = key
	}
	copied := *client
	copied.Transport = a
	return &copied
}

// addressing is an http.RoundTripper.
type addressing struct {
	base    http.RoundTripper
	key     Key    // "" = as it is in the request
	version string // "" = none
}

// RoundTrip implements http.RoundTripper.
func (a *addressing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if a.key != "" {
		req.Header.Del("Authorization")
		req.Header.Set("Api-Key", string(a.key))
	}
	if a.version != "" {
		query := req.URL.Query()
		query.Set("api-version", a.version)
		req.URL.RawQuery = query.Encode()
	}
	return a.base.RoundTrip(req) //nolint:wrapcheck // the client wraps it
}

// CloseIdleConnections is called by that of http.Client.
func (a *addressing) CloseIdleConnections() {
	if c, ok := a.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
