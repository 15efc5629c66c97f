package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// codeOf returns the code of an error of ours.
func codeOf(t *testing.T, err error) guard.Code {
	t.Helper()
	e, ok := errors.AsType[*guard.Error](err)
	if !ok {
		t.Fatalf("error %v is none of ours", err)
	}
	return e.Code
}

// connect runs the MCP client with a sign-in until the test ends.
func connect(t *testing.T, w *world, signer *bench, tokens oauth.Store) (*mcp.Manager, *tools.Registry) {
	t.Helper()
	registry := &tools.Registry{}
	m, err := mcp.New(mcp.Options{
		Servers:  []mcp.Server{{ID: "docs", URL: w.url(), Trust: guard.Trusted, OAuth: true, Timeout: time.Minute}},
		Registry: registry, Log: zerolog.Nop(), ListTimeout: time.Minute,
		OAuth: func(s mcp.Server) (auth.OAuthHandler, error) {
			return signer.Handler(oauth.Server{ID: s.ID, URL: s.URL, Trusted: s.Trust == guard.Trusted, Store: tokens, Transport: w.base})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, m.Run)
	return m, registry
}

// run runs something until the test ends.
func run(t *testing.T, loop func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- loop(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := oauth.NewFiles(t.TempDir() + "/mcp-tokens")
	signer := w.manager(w.browse)
	run(t, signer.Run)
	m, registry := connect(t, w, signer, tokens)
	if err := m.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Restart(t.Context(), "docs"); codeOf(t, err) != guard.AuthFailure || !strings.Contains(err.Error(), "wants a sign-in") {
		t.Fatalf("without a token: %v", err)
	}
	if st, ok := signer.Status("docs"); !ok || st.State != oauth.Wanted || st.Reason == "" {
		t.Errorf("status = %+v", st)
	}
	begin(t, signer)
	if err := <-signer.done; err != nil {
		t.Fatal(err)
	}
	if _, err := m.Restart(t.Context(), "docs"); err != nil {
		t.Fatalf("with a token: %v", err)
	}
	if _, ok := registry.Lookup("docs:echo"); !ok {
		t.Error("the tool is not there")
	}
	w.revoke() // the server forgets our token: the connection signs its next request with a renewed one
	if _, err := m.Restart(t.Context(), "docs"); err != nil {
		t.Errorf("with a token that is renewed: %v", err)
	}
	st, _ := signer.Status("docs")
	if st.State != oauth.SignedIn || st.Issuer != w.as.URL || !cmp.Equal(st.Scopes, []string{"read"}) {
		t.Errorf("status = %+v", st)
	}

	again := w.manager(func(context.Context, string, string) error {
		t.Error("a stored token makes a sign-in unnecessary")
		return nil
	})
	m, _ = connect(t, w, again, tokens)
	if err := m.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := m.Statuses(); len(list) != 1 || list[0].State != mcp.Connected {
		t.Errorf("after a restart: %+v", list)
	}
}

// begin begins a sign-in; Run may not have come to it yet.
func begin(t *testing.T, b *bench) {
	t.Helper()
	for {
		err := b.Begin("docs")
		if err == nil {
			return
		}
		if !errors.Is(err, oauth.ErrNotRunning) {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

func TestPastedAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var b *bench
	b = w.manager(func(ctx context.Context, server, link string) error {
		if st, _ := b.Status(server); st.State != oauth.Waiting {
			t.Errorf("state = %s", st.State)
		}
		landed := w.land(ctx, link)
		u, err := url.Parse(landed)
		if err != nil {
			return err
		}
		with := func(change func(u *url.URL, q url.Values)) string {
			v, q := *u, u.Query()
			change(&v, q)
			v.RawQuery = q.Encode()
			return v.String()
		}
		wrong := map[string]string{
			"nothing":       "",
			"no address":    "yes, I did",
			"another host":  with(func(u *url.URL, _ url.Values) { u.Host = "evil.example" }),
			"another path":  with(func(u *url.URL, _ url.Values) { u.Path = "/" }),
			"another way":   with(func(u *url.URL, _ url.Values) { u.Scheme = "https" }),
			"the link":      link,
			"no state":      with(func(_ *url.URL, q url.Values) { q.Del("state") }),
			"wrong state":   with(func(_ *url.URL, q url.Values) { q.Set("state", "AAAA") }),
			"two codes":     landed + "&code=other",
			"no code":       with(func(_ *url.URL, q url.Values) { q.Del("code") }),
			"much too long": landed + "&x=" + strings.Repeat("x", 1<<16),
		}
		for name, text := range wrong {
			if err := b.Complete(server, text); err == nil || codeOf(t, err) != guard.InvalidInput {
				t.Errorf("%s: error = %v", name, err)
			}
		}
		if err := b.Complete(server, " <"+strings.TrimPrefix(landed, "http://")+">\n"); err != nil {
			t.Errorf("the right one: %v", err)
		}
		if err := b.Complete(server, landed); err == nil || !strings.Contains(err.Error(), "come already") {
			t.Errorf("once more: %v", err)
		}
		return nil
	})
	h := b.handler(t, w.server())
	if err := b.SignIn(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	if err := w.ping(h); err != nil {
		t.Error(err)
	}
	if err := b.Complete("docs", "http://127.0.0.1:1/callback?code=1&state=2"); err == nil || !strings.Contains(err.Error(), "no sign-in") {
		t.Errorf("after the end: %v", err)
	}
	if err := b.Complete("nowhere", ""); codeOf(t, err) != guard.NotFound {
		t.Errorf("an unknown server: %v", err)
	}
}

func TestCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.manager(func(ctx context.Context, _, link string) error {
		landed := w.land(ctx, link)
		u, err := url.Parse(landed)
		if err != nil {
			return err
		}
		q := u.Query()
		q.Set("state", "AAAA")
		for _, c := range []struct {
			name, method, address, host string
			want                        int
		}{
			{"another path", http.MethodGet, "http://" + u.Host + "/favicon.ico", "", http.StatusNotFound},
			{"another method", http.MethodPost, landed, "", http.StatusMethodNotAllowed},
			{"another name", http.MethodGet, landed, "evil.example", http.StatusForbidden},
			{"wrong state", http.MethodGet, "http://" + u.Host + u.Path + "?" + q.Encode(), "", http.StatusBadRequest},
			{"the right one", http.MethodGet, landed, "", http.StatusOK},
			{"once more", http.MethodGet, landed, "", http.StatusBadRequest},
		} {
			resp, err := w.do(ctx, &http.Client{Transport: w.base}, c.method, c.address, c.host)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != c.want || resp.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: status %d, want %d", c.name, resp.StatusCode, c.want)
			}
		}
		return nil
	})
	h := b.handler(t, w.server())
	if err := b.SignIn(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	if err := w.ping(h); err != nil {
		t.Error(err)
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	const document = "https://bot.example/client.json"
	for name, c := range map[string]struct {
		server func(*oauth.Server)
		meta   func(map[string]any)
		want   string
	}{
		"registers itself": {want: "client-1"},
		"registered":       {server: func(s *oauth.Server) { s.ClientID, s.ClientSecret = "ours", "top-secret" }, want: "ours"},
		"document": {
			server: func(s *oauth.Server) { s.ClientID = document },
			meta: func(m map[string]any) {
				m["client_id_metadata_document_supported"] = true
				m["token_endpoint_auth_methods_supported"] = []string{"none"}
			},
			want: document,
		},
		"document that the server does not know": {server: func(s *oauth.Server) { s.ClientID = document }, want: "client-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.meta = c.meta
			if c.want != "client-1" {
				w.clients[c.want] = ""
			}
			s := w.server()
			if c.server != nil {
				c.server(&s)
				if c.want == s.ClientID {
					w.clients[s.ClientID] = string(s.ClientSecret)
				}
			}
			b := w.manager(w.browse)
			h := b.handler(t, s)
			if err := b.SignIn(t.Context(), "docs"); err != nil {
				t.Fatal(err)
			}
			if err := w.ping(h); err != nil {
				t.Error(err)
			}
			w.revoke()
			if err := w.ping(h); err != nil {
				t.Errorf("renewed: %v", err)
			}
			forms := w.asked()
			if last := forms[len(forms)-1]; last.Get("client_id") != c.want || last.Get("grant_type") != "refresh_token" || last.Get("resource") != w.url() {
				t.Errorf("the last request was %v", last)
			}
		})
	}
}

func TestIssuerStaysBound(t *testing.T) {
	t.Parallel()
	w, evil := newWorld(t), newWorld(t)
	w.clients["ours"], evil.clients["ours"] = "top-secret", "top-secret"
	s := w.server()
	s.ClientID, s.ClientSecret = "ours", "top-secret"
	b := w.manager(w.browse)
	b.handler(t, s)
	if err := b.SignIn(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	w.resource = func(m *oauthex.ProtectedResourceMetadata) { m.AuthorizationServers = []string{evil.as.URL} }
	err := b.SignIn(t.Context(), "docs")
	if codeOf(t, err) != guard.AuthFailure || !strings.Contains(err.Error(), "does not match pre-registered") {
		t.Errorf("another issuer: %v", err)
	}
	if forms := evil.asked(); len(forms) > 0 {
		t.Errorf("it was asked %v", forms)
	}
	if err := b.Forget(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	w.resource = nil
	if err := b.SignIn(t.Context(), "docs"); err != nil {
		t.Errorf("after it was forgotten: %v", err)
	}
}

func TestMorePermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.manager(w.browse)
	s := w.server()
	s.Scopes = []string{"read", "list"}
	h := b.handler(t, s)
	if err := b.SignIn(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(w.scopes)
	if diff := cmp.Diff([]string{"list", "read"}, w.scopes); diff != "" {
		t.Errorf("scopes: %s", diff)
	}
	w.mu.Lock()
	w.need = "write"
	w.mu.Unlock()
	if err := w.ping(h); codeOf(t, err) != guard.AuthFailure || !strings.Contains(err.Error(), "more permissions") {
		t.Fatalf("error = %v", err)
	}
	if st, _ := b.Status("docs"); st.State != oauth.Wanted {
		t.Errorf("state = %s", st.State)
	}
	if err := b.SignIn(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(w.scopes)
	if diff := cmp.Diff([]string{"list", "read", "write"}, w.scopes); diff != "" {
		t.Errorf("scopes: %s", diff)
	}
	if err := w.ping(h); err != nil {
		t.Error(err)
	}
}

func TestOneSignInAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan string)
	b := w.manager(func(ctx context.Context, _, link string) error {
		select {
		case asked <- link:
		case <-ctx.Done():
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- b.Run(ctx) }()
	b.handler(t, w.server())
	begin(t, b)
	link := <-asked
	if err := b.Begin("docs"); err == nil || !strings.Contains(err.Error(), "waiting already") {
		t.Errorf("a second one: %v", err)
	}
	u, _ := url.Parse(link)
	back, _ := url.Parse(u.Query().Get("redirect_uri"))
	other := w.server()
	other.ID = "other"
	other.CallbackPort = port(t, back)
	b.handler(t, other)
	if err := b.Begin("other"); err == nil || !strings.Contains(err.Error(), "callback_port") {
		t.Errorf("on the same port: %v", err)
	}
	if err := b.Cancel("docs"); err != nil {
		t.Error(err)
	}
	if err := <-b.done; !errors.Is(err, oauth.ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := b.Cancel("docs"); err == nil {
		t.Error("there is nothing to cancel")
	}

	begin(t, b)
	<-asked
	changed := w.server()
	changed.Scopes = []string{"read"}
	b.handler(t, changed)
	if err := <-b.done; !errors.Is(err, oauth.ErrCancelled) {
		t.Errorf("another configuration: %v", err)
	}

	begin(t, b)
	<-asked
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := <-b.done; err == nil {
		t.Error("the end of Run ends sign-ins")
	}
	if err := b.Begin("docs"); !errors.Is(err, oauth.ErrNotRunning) {
		t.Errorf("after Run: %v", err)
	}
}

func port(t *testing.T, u *url.URL) int {
	t.Helper()
	var n int
	if err := json.Unmarshal([]byte(u.Port()), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
