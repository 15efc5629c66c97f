package oauth_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issued is an authorization code, or a refresh token.
type issued struct {
	client, challenge, redirect, resource, scope string
}

// world is an authorization server, and an MCP server that trusts it.
type world struct {
	t    *testing.T
	as   *httptest.Server
	rs   *httptest.Server
	base *http.Transport

	mu      sync.Mutex
	clients map[string]string // secrets by id
	codes   map[string]issued
	refresh map[string]issued
	access  map[string]string // scopes by token
	secrets []string          // all that was ever given out
	forms   []url.Values      // what the token endpoint was asked
	scopes  []string          // that were asked for at the authorization endpoint

	// What may be wrong; set before use.
	meta      func(m map[string]any) // changes the metadata
	resource  func(m *oauthex.ProtectedResourceMetadata)
	iss       string           // of the answer; "" = the right one, "-" = none
	refuse    string           // error of the authorization endpoint
	register  http.HandlerFunc // instead of the registration
	token     http.HandlerFunc // instead of the token endpoint
	expires   int              // seconds
	need      string           // scope that the MCP server demands
	noRefresh bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, base: &http.Transport{}, expires: 3600,
		clients: map[string]string{}, codes: map[string]issued{}, refresh: map[string]issued{}, access: map[string]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", w.serveMeta)
	mux.HandleFunc("POST /register", w.serveRegister)
	mux.HandleFunc("GET /authorize", w.serveAuthorize)
	mux.HandleFunc("POST /token", w.serveToken)
	w.as = httptest.NewServer(mux)
	w.rs = httptest.NewServer(w.mcpServer())
	t.Cleanup(func() {
		w.base.CloseIdleConnections()
		for _, s := range []*httptest.Server{w.as, w.rs} {
			s.CloseClientConnections()
			s.Close()
		}
	})
	return w
}

func (w *world) url() string { return w.rs.URL + "/mcp" }

// mcpServer returns an MCP server behind bearer tokens.
func (w *world) mcpServer() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "guarded", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "echo", Description: "Says the text."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			Text string `json:"text"`
		},
		) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		scope, ok := w.access[token]
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Scopes: strings.Fields(scope), Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(rw http.ResponseWriter, r *http.Request) {
		o := &auth.RequireBearerTokenOptions{ResourceMetadataURL: w.rs.URL + "/meta"}
		w.mu.Lock()
		need := w.need
		scope, known := w.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		w.mu.Unlock()
		if known && need != "" && !slices.Contains(strings.Fields(scope), need) {
			rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+need+`", resource_metadata="`+w.rs.URL+`/meta"`)
			http.Error(rw, "insufficient scope", http.StatusForbidden)
			return
		}
		auth.RequireBearerToken(verify, o)(handler).ServeHTTP(rw, r)
	})
	mux.HandleFunc("/meta", func(rw http.ResponseWriter, r *http.Request) {
		m := &oauthex.ProtectedResourceMetadata{Resource: w.url(), AuthorizationServers: []string{w.as.URL}, ScopesSupported: []string{"read"}}
		if w.resource != nil {
			w.resource(m)
		}
		auth.ProtectedResourceMetadataHandler(m).ServeHTTP(rw, r)
	})
	return mux
}

func (w *world) serveMeta(rw http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": w.as.URL, "authorization_endpoint": w.as.URL + "/authorize", "token_endpoint": w.as.URL + "/token",
		"registration_endpoint": w.as.URL + "/register", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		"token_endpoint_auth_methods_supported": []string{"client_secret_post"},
	}
	if w.meta != nil {
		w.meta(m)
	}
	reply(rw, http.StatusOK, m)
}

func reply(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(v)
}

func (w *world) secret(kind string) string {
	s := kind + "-" + rand.Text()
	w.secrets = append(w.secrets, s)
	return s
}

func (w *world) serveRegister(rw http.ResponseWriter, r *http.Request) {
	if w.register != nil {
		w.register(rw, r)
		return
	}
	var m oauthex.ClientRegistrationMetadata
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ApplicationType != "native" || !slices.Contains(m.GrantTypes, "refresh_token") {
		reply(rw, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := fmt.Sprintf("client-%d", len(w.clients)+1)
	w.clients[id] = w.secret("registered")
	reply(rw, http.StatusCreated, map[string]any{
		"client_id": id, "client_secret": w.clients[id], "token_endpoint_auth_method": "client_secret_post", "redirect_uris": m.RedirectURIs,
	})
}

func (w *world) serveAuthorize(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.clients[q.Get("client_id")]
	back, err := url.Parse(q.Get("redirect_uri"))
	if !known || err != nil || q.Get("code_challenge_method") != "S256" || q.Get("resource") != w.url() || q.Get("response_type") != "code" {
		http.Error(rw, "a wrong request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	w.scopes = strings.Fields(q.Get("scope"))
	answer := url.Values{"state": {q.Get("state")}}
	switch w.iss {
	case "":
		answer.Set("iss", w.as.URL)
	case "-":
	default:
		answer.Set("iss", w.iss)
	}
	if w.refuse != "" {
		answer.Set("error", w.refuse)
	} else {
		code := w.secret("code")
		w.codes[code] = issued{q.Get("client_id"), q.Get("code_challenge"), q.Get("redirect_uri"), q.Get("resource"), q.Get("scope")}
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(rw, r, back.String(), http.StatusFound)
}

func (w *world) serveToken(rw http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	w.mu.Lock()
	w.forms = append(w.forms, r.PostForm)
	w.mu.Unlock()
	if w.token != nil {
		w.token(rw, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := r.PostForm
	if secret, ok := w.clients[f.Get("client_id")]; !ok || secret != f.Get("client_secret") {
		reply(rw, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	var was issued
	var ok bool
	switch f.Get("grant_type") {
	case "authorization_code":
		was, ok = w.codes[f.Get("code")]
		delete(w.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		ok = ok && was.challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && was.redirect == f.Get("redirect_uri")
	case "refresh_token":
		was, ok = w.refresh[f.Get("refresh_token")]
		delete(w.refresh, f.Get("refresh_token"))
	}
	if !ok || was.client != f.Get("client_id") || was.resource != f.Get("resource") {
		reply(rw, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "used up"})
		return
	}
	out := map[string]any{"access_token": w.secret("access"), "token_type": "Bearer", "expires_in": w.expires, "scope": was.scope}
	w.access[out["access_token"].(string)] = was.scope
	if !w.noRefresh {
		refresh := w.secret("refresh")
		out["refresh_token"] = refresh
		w.refresh[refresh] = was
	}
	reply(rw, http.StatusOK, out)
}

// revoke makes all access tokens worthless.
func (w *world) revoke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.access)
}

func (w *world) asked() []url.Values {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.forms)
}

// server returns the configuration of the world's MCP server.
func (w *world) server() oauth.Server {
	return oauth.Server{ID: "docs", URL: w.url(), Trusted: true, Transport: w.base}
}

// get opens an address like a browser, and gives the page.
func (w *world) get(ctx context.Context, address string) (int, string) {
	w.t.Helper()
	resp, err := w.do(ctx, &http.Client{Transport: w.base}, http.MethodGet, address, "")
	if err != nil {
		w.t.Errorf("open %s: %v", address, err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func (w *world) do(ctx context.Context, c *http.Client, method, address, host string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Host = host
	return c.Do(req)
}

// land opens a link and returns the address to which it redirects, as a person would copy it.
func (w *world) land(ctx context.Context, link string) string {
	w.t.Helper()
	c := &http.Client{Transport: w.base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := w.do(ctx, c, http.MethodGet, link, "")
	if err != nil {
		w.t.Errorf("open the link: %v", err)
		return ""
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		w.t.Errorf("the sign-in page answers %s", resp.Status)
	}
	return resp.Header.Get("Location")
}

// browse returns an Ask of a person who signs in at once.
func (w *world) browse(ctx context.Context, _, link string) error {
	if status, page := w.get(ctx, link); status != http.StatusOK || !strings.Contains(page, "Thank you") {
		w.t.Errorf("the browser ends with %d: %s", status, page)
	}
	return nil
}

// clock is a time that changes only when it is set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a Manager, and what it logs.
type bench struct {
	*oauth.Manager
	clock *clock
	done  chan error
}

// manager returns one that asks with ask. At the end, its log is searched for secrets.
func (w *world) manager(ask func(ctx context.Context, server, link string) error, change ...func(*oauth.Options)) *bench {
	w.t.Helper()
	log := &lines{}
	b := &bench{clock: &clock{now: time.Now()}, done: make(chan error, 10)}
	o := oauth.Options{
		Ask: ask, Done: func(_ string, err error) { b.done <- err }, Now: b.clock.Now, Log: zerolog.New(log).Level(zerolog.DebugLevel),
	}
	for _, f := range change {
		f(&o)
	}
	m, err := oauth.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	b.Manager = m
	w.t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.secrets {
			if strings.Contains(log.String(), s) {
				w.t.Errorf("the log contains a secret: %s", log)
			}
		}
	})
	return b
}

// handler registers a server.
func (b *bench) handler(t *testing.T, s oauth.Server) auth.OAuthHandler {
	t.Helper()
	h, err := b.Handler(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// token returns what a request would be signed with; "" = nothing.
func token(t *testing.T, h auth.OAuthHandler) (string, error) {
	t.Helper()
	src, err := h.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := src.Token()
	if tok == nil {
		return "", err
	}
	return tok.AccessToken, err
}

// ping makes a request like the SDK's transport: signed, after a refusal Authorize, then once more.
func (w *world) ping(h auth.OAuthHandler) error {
	w.t.Helper()
	request := func() (*http.Request, *http.Response, error) {
		tok, err := token(w.t, h)
		if err != nil {
			return nil, nil, err
		}
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
		req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url(), body)
		if err != nil {
			return nil, nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		if tok != "" {
			req.Header.Set("Authorization", "Bearer "+tok)
		}
		resp, err := w.base.RoundTrip(req)
		return req, resp, err
	}
	req, resp, err := request()
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		if err := h.Authorize(w.t.Context(), req, resp); err != nil {
			return err
		}
		if _, resp, err = request(); err != nil {
			return err
		}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
