package oauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// failing is a store that works until it is told not to.
type failing struct {
	oauth.Memory
	load, save error
}

func (f *failing) Load(ctx context.Context, id string) (*oauth.Token, error) {
	if f.load != nil {
		return nil, f.load
	}
	return f.Memory.Load(ctx, id)
}

func (f *failing) Save(ctx context.Context, t oauth.Token) error {
	if f.save != nil {
		return f.save
	}
	return f.Memory.Save(ctx, t)
}

// signedIn returns a world with a token in a store.
func signedIn(t *testing.T, change func(w *world, s *oauth.Server)) (*world, *bench, oauth.Server) {
	t.Helper()
	w := newWorld(t)
	s := w.server()
	s.Store = &oauth.Memory{}
	if change != nil {
		change(w, &s)
	}
	b := w.manager(w.browse)
	b.handler(t, s)
	if err := b.SignIn(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	return w, b, s
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	w, b, s := signedIn(t, nil)
	h := b.handler(t, s)
	first, err := token(t, h)
	if err != nil || first == "" {
		t.Fatalf("token: %v", err)
	}
	b.clock.add(3589 * time.Second)
	if tok, _ := token(t, h); tok != first {
		t.Error("it was renewed too early")
	}
	b.clock.add(2 * time.Second)
	second, err := token(t, h)
	if err != nil || second == first || second == "" {
		t.Fatalf("it was not renewed: %v", err)
	}
	stored, err := s.Store.Load(t.Context(), s.ID)
	if err != nil || string(stored.AccessToken) != second {
		t.Errorf("the stored token is another one: %v", err)
	}

	w.token = func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "later", http.StatusServiceUnavailable) }
	b.clock.add(2 * time.Hour)
	if _, err := token(t, h); codeOf(t, err) != guard.Transient {
		t.Errorf("while it is away: %v", err)
	}
	w.token = nil
	if third, err := token(t, h); err != nil || third == second {
		t.Errorf("when it is back: %v", err)
	}

	w.mu.Lock()
	clear(w.refresh)
	w.mu.Unlock()
	b.clock.add(2 * time.Hour)
	if tok, err := token(t, h); err != nil || tok != "" {
		t.Errorf("refused: %v", err)
	}
	if err := w.ping(h); codeOf(t, err) != guard.AuthFailure || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("refused: %v", err)
	}
	if st, _ := b.Status(s.ID); st.State != oauth.Wanted {
		t.Errorf("state = %s", st.State)
	}
	if stored, err = s.Store.Load(t.Context(), s.ID); err != nil || stored.AccessToken+stored.RefreshToken != "" || stored.Issuer != w.as.URL {
		t.Errorf("stored = %v, %v", stored, err)
	}
	if err := b.SignIn(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.ping(h); err != nil {
		t.Errorf("after another sign-in: %v", err)
	}
}

func TestRenewedElsewhere(t *testing.T) {
	t.Parallel()
	w, b, s := signedIn(t, nil)
	other := w.manager(w.browse)
	h, elsewhere := b.handler(t, s), other.handler(t, s)
	if tok, err := token(t, elsewhere); tok == "" || err != nil {
		t.Fatal(err)
	}
	b.clock.add(2 * time.Hour)
	renewed, err := token(t, h)
	if err != nil {
		t.Fatal(err)
	}
	other.clock.add(2 * time.Hour)
	if tok, err := token(t, elsewhere); err != nil || tok != renewed {
		t.Errorf("the used refresh token ends the sign-in: %q, %v", tok, err)
	}
}

func TestServerRefusesToken(t *testing.T) {
	t.Parallel()
	t.Run("renewed once", func(t *testing.T) {
		t.Parallel()
		w, b, s := signedIn(t, nil)
		h := b.handler(t, s)
		w.revoke()
		if err := w.ping(h); err != nil {
			t.Fatalf("renewed: %v", err)
		}
		w.revoke()
		if err := w.ping(h); codeOf(t, err) != guard.AuthFailure {
			t.Errorf("refused at once again: %v", err)
		}
		n := len(w.asked())
		b.clock.add(time.Hour / 2)
		if err := w.ping(h); err != nil || len(w.asked()) != n+1 {
			t.Errorf("some time later: %v", err)
		}
		if st, _ := b.Status(s.ID); st.State != oauth.SignedIn {
			t.Errorf("state = %s", st.State)
		}
	})
	t.Run("without a refresh token", func(t *testing.T) {
		t.Parallel()
		w, b, s := signedIn(t, func(w *world, _ *oauth.Server) { w.noRefresh = true })
		h := b.handler(t, s)
		w.revoke()
		if err := w.ping(h); codeOf(t, err) != guard.AuthFailure || !strings.Contains(err.Error(), "any more") {
			t.Errorf("error = %v", err)
		}
		b.clock.add(2 * time.Hour)
		if tok, err := token(t, h); tok != "" || err != nil {
			t.Errorf("an expired token is used: %v", err)
		}
	})
	t.Run("another token is there", func(t *testing.T) {
		t.Parallel()
		w, b, s := signedIn(t, nil)
		h := b.handler(t, s)
		n := len(w.asked())
		if err := refuse(t, h, "old", http.StatusUnauthorized, ""); err != nil || len(w.asked()) != n {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("forbidden", func(t *testing.T) {
		t.Parallel()
		_, b, s := signedIn(t, nil)
		h := b.handler(t, s)
		if err := refuse(t, h, "", http.StatusForbidden, ""); codeOf(t, err) != guard.AuthFailure || !strings.Contains(err.Error(), "403") {
			t.Errorf("error = %v", err)
		}
		if st, _ := b.Status(s.ID); st.State != oauth.SignedIn {
			t.Errorf("state = %s", st.State)
		}
	})
}

// refuse reports to h that the server refused a request with a token.
func refuse(t *testing.T, h auth.OAuthHandler, signed string, status int, challenge string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example.com/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if signed != "" {
		req.Header.Set("Authorization", "Bearer "+signed)
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("no"))}
	resp.Header.Set("WWW-Authenticate", challenge)
	return h.Authorize(t.Context(), req, resp)
}

func TestTokenIsBound(t *testing.T) {
	t.Parallel()
	w, _, s := signedIn(t, nil)
	own, err := s.Store.Load(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server func(*oauth.Server)
		token  func(*oauth.Token)
		want   string
	}{
		"the same":          {want: string(own.AccessToken)},
		"other scopes":      {server: func(s *oauth.Server) { s.Scopes = []string{"x"} }, want: string(own.AccessToken)},
		"another address":   {server: func(s *oauth.Server) { s.URL = w.rs.URL + "/other" }},
		"another host":      {server: func(s *oauth.Server) { s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }},
		"another client":    {server: func(s *oauth.Server) { s.ClientID = "ours" }},
		"of another server": {token: func(t *oauth.Token) { t.Server = "docs2" }, server: func(s *oauth.Server) { s.ID = "docs" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tok := s, *own
			if c.server != nil {
				c.server(&s)
			}
			if c.token != nil {
				c.token(&tok)
			}
			s.Store = only{tok}
			if got, err := token(t, w.manager(w.browse).handler(t, s)); got != c.want || err != nil {
				t.Errorf("token %q, %v; want %q", got, err, c.want)
			}
		})
	}
	t.Run("changed while it runs", func(t *testing.T) {
		t.Parallel()
		b := w.manager(w.browse)
		s := w.server()
		b.handler(t, s)
		if err := b.SignIn(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if tok, _ := token(t, b.handler(t, s)); tok == "" {
			t.Error("the same configuration has lost its token")
		}
		s.Scopes = []string{"read", "more"}
		if tok, _ := token(t, b.handler(t, s)); tok == "" {
			t.Error("other scopes lose the token")
		}
		s.URL += "?x=1"
		if tok, _ := token(t, b.handler(t, s)); tok != "" {
			t.Error("another address gets the token")
		}
	})
}

// only is a store that gives one token for every id.
type only struct{ t oauth.Token }

func (o only) Load(context.Context, string) (*oauth.Token, error) { return &o.t, nil }
func (o only) Save(context.Context, oauth.Token) error            { return nil }
func (o only) Delete(context.Context, string) error               { return nil }

func TestBrokenStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.manager(w.browse)
	s := w.server()
	broken := &failing{load: errors.New("disk on fire")}
	s.Store = broken
	h := b.handler(t, s)
	if _, err := token(t, h); codeOf(t, err) != guard.Transient {
		t.Errorf("unreadable: %v", err)
	}
	if err := b.SignIn(t.Context(), s.ID); err == nil {
		t.Error("an unreadable store is no place for a token")
	}
	broken.load, broken.save = oauth.ErrDamaged, errors.New("disk full")
	if tok, err := token(t, h); tok != "" || err != nil {
		t.Errorf("damaged: %v", err)
	}
	if err := b.SignIn(t.Context(), s.ID); !errors.Is(err, oauth.ErrNotStored) {
		t.Errorf("full: %v", err)
	}
	if err := w.ping(h); err != nil {
		t.Errorf("it is good until the end: %v", err)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	w, b, s := signedIn(t, nil)
	if err := b.Forget(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if stored, err := s.Store.Load(t.Context(), s.ID); stored != nil || err != nil {
		t.Errorf("stored = %v, %v", stored, err)
	}
	if err := w.ping(b.handler(t, s)); codeOf(t, err) != guard.AuthFailure {
		t.Errorf("error = %v", err)
	}
}

// router sends requests for names to servers on this machine, as a resolver would, and counts the others.
type router struct {
	base  http.RoundTripper
	hosts map[string]string
	stray chan string
}

func (r *router) RoundTrip(req *http.Request) (*http.Response, error) {
	to, ok := r.hosts[req.URL.Host]
	if !ok {
		r.stray <- req.URL.String()
		return nil, errors.New("no such host")
	}
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = "http", to, ""
	return r.base.RoundTrip(out)
}

// TestAttackNamedAddresses: what the metadata of a server names is requested only if the server may name it.
func TestAttackNamedAddresses(t *testing.T) {
	t.Parallel()
	const site, signer = "https://mcp.example.com", "https://login.example.com"
	public := func(m map[string]any) {
		m["issuer"], m["token_endpoint"], m["registration_endpoint"] = signer, signer+"/token", signer+"/register"
		m["authorization_endpoint"] = signer + "/authorize"
	}
	for name, c := range map[string]struct {
		meta    func(map[string]any)
		issuer  string
		trusted bool
		blocked bool
	}{
		"trusted":                        {trusted: true},
		"trusted: issuer here":           {trusted: true, issuer: "http://127.0.0.1:18767", blocked: true},
		"trusted: metadata of the cloud": {trusted: true, issuer: "https://169.254.169.254", blocked: true},
		"trusted: token endpoint":        {trusted: true, meta: func(m map[string]any) { m["token_endpoint"] = "https://localhost/token" }, blocked: true},
		"trusted: registration":          {trusted: true, meta: func(m map[string]any) { m["registration_endpoint"] = "https://[::1]/register" }, blocked: true},
		"trusted: authorization page":    {trusted: true, meta: func(m map[string]any) { m["authorization_endpoint"] = "http://localhost:9090/" }, blocked: true},

		"public":             {},
		"private issuer":     {issuer: "https://192.168.1.1", blocked: true},
		"issuer here":        {issuer: "http://127.0.0.1:18767", blocked: true},
		"private name":       {issuer: "https://login.internal", blocked: true},
		"plain http":         {issuer: "http://login.example.com", blocked: true},
		"token endpoint":     {meta: func(m map[string]any) { m["token_endpoint"] = "https://localhost/token" }, blocked: true},
		"registration":       {meta: func(m map[string]any) { m["registration_endpoint"] = "https://127.0.0.1/register" }, blocked: true},
		"authorization page": {meta: func(m map[string]any) { m["authorization_endpoint"] = "https://router.local/reboot" }, blocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.meta = func(m map[string]any) {
				public(m)
				if c.meta != nil {
					c.meta(m)
				}
			}
			w.resource = func(m *oauthex.ProtectedResourceMetadata) {
				m.Resource, m.AuthorizationServers = site+"/mcp", []string{signer}
				if c.issuer != "" {
					m.AuthorizationServers[0] = c.issuer
				}
			}
			stray := make(chan string, 100)
			r := &router{base: w.base, stray: stray, hosts: map[string]string{
				"mcp.example.com": w.rs.Listener.Addr().String(), "login.example.com": w.as.Listener.Addr().String(),
			}}
			denied := errors.New("the link was shown")
			b := w.manager(func(context.Context, string, string) error { return denied })
			s := oauth.Server{ID: "docs", URL: site + "/mcp", Transport: r, Trusted: c.trusted}
			h := b.handler(t, s)
			if err := refuse(t, h, "", http.StatusUnauthorized, `Bearer resource_metadata="`+site+`/meta"`); codeOf(t, err) != guard.AuthFailure {
				t.Fatalf("error = %v", err)
			}
			err := b.SignIn(t.Context(), s.ID)
			shown := err != nil && strings.Contains(err.Error(), denied.Error())
			if err == nil || shown == c.blocked {
				t.Errorf("error = %v", err)
			}
			select {
			case address := <-stray:
				t.Errorf("%s was requested", address)
			default:
			}
		})
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	m, err := oauth.New(oauth.Options{Ask: func(context.Context, string, string) error { return nil }, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oauth.New(oauth.Options{}); err == nil {
		t.Error("nobody can be asked")
	}
	good := oauth.Server{ID: "docs", URL: "https://mcp.example.com/mcp", Transport: http.DefaultTransport}
	if _, err := m.Handler(good); err != nil {
		t.Errorf("a good one: %v", err)
	}
	for name, change := range map[string]func(*oauth.Server){
		"no id":                  func(s *oauth.Server) { s.ID = "" },
		"a path as id":           func(s *oauth.Server) { s.ID = "../docs" },
		"no url":                 func(s *oauth.Server) { s.URL = "" },
		"http":                   func(s *oauth.Server) { s.URL = "http://mcp.example.com" },
		"http, trusted":          func(s *oauth.Server) { s.URL, s.Trusted = "http://mcp.example.com", true },
		"here":                   func(s *oauth.Server) { s.URL = "https://localhost/mcp" },
		"no transport":           func(s *oauth.Server) { s.Transport = nil },
		"port":                   func(s *oauth.Server) { s.CallbackPort = 65536 },
		"secret without id":      func(s *oauth.Server) { s.ClientSecret = "x" },
		"secret with a document": func(s *oauth.Server) { s.ClientID, s.ClientSecret = "https://bot.example/c.json", "x" },
	} {
		s := good
		change(&s)
		if _, err := m.Handler(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, err := range []error{m.Begin("x"), m.SignIn(t.Context(), "x"), m.Complete("x", ""), m.Cancel("x"), m.Forget(t.Context(), "x")} {
		if codeOf(t, err) != guard.NotFound {
			t.Errorf("an unknown server: %v", err)
		}
	}
	if _, ok := m.Status("x"); ok {
		t.Error("an unknown server has a status")
	}
	if st, ok := m.Status("docs"); !ok || st.State != oauth.Unknown {
		t.Errorf("status = %+v", st)
	}
}

// TestRenewedTogether: of two processes whose token is due at the same time one renews it, and both go on with that: no
// refresh token comes twice.
func TestRenewedTogether(t *testing.T) {
	t.Parallel()
	var one sync.Mutex
	entered := make(chan struct{}, 2)
	alone := func(o *oauth.Options) {
		o.Alone = func(context.Context, string) (func(), error) {
			entered <- struct{}{}
			one.Lock()
			return one.Unlock, nil
		}
	}
	w := newWorld(t)
	s := w.server()
	s.Store = &oauth.Memory{}
	processes := []*bench{w.manager(w.browse, alone), w.manager(w.browse, alone)}
	first := processes[0].handler(t, s)
	if err := processes[0].SignIn(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	handlers := []auth.OAuthHandler{first, processes[1].handler(t, s)}
	for i, h := range handlers {
		if tok, err := token(t, h); tok == "" || err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		processes[i].clock.add(2 * time.Hour)
	}
	one.Lock() // until both are there
	before := len(w.asked())
	var tokens [2]string
	var wg sync.WaitGroup
	for i, h := range handlers {
		wg.Go(func() {
			tok, err := token(t, h)
			if err != nil {
				t.Error(err)
			}
			tokens[i] = tok
		})
	}
	<-entered
	<-entered
	one.Unlock()
	wg.Wait()
	if tokens[0] == "" || tokens[0] != tokens[1] || len(w.asked()) != before+1 {
		t.Errorf("the same token: %t; %d renewals", tokens[0] == tokens[1], len(w.asked())-before)
	}
}

// TestNotAlone: while nobody knows whether another process renews, nothing is renewed, and nothing is lost.
func TestNotAlone(t *testing.T) {
	t.Parallel()
	away := true
	w := newWorld(t)
	s := w.server()
	s.Store = &oauth.Memory{}
	b := w.manager(w.browse, func(o *oauth.Options) {
		o.Alone = func(context.Context, string) (func(), error) {
			if away {
				return nil, errors.New("the database is away")
			}
			return func() {}, nil
		}
	})
	h := b.handler(t, s)
	if err := b.SignIn(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	b.clock.add(2 * time.Hour)
	if _, err := token(t, h); codeOf(t, err) != guard.Transient {
		t.Errorf("while the database is away: %v", err)
	}
	away = false
	if tok, err := token(t, h); tok == "" || err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// TestSignedInElsewhere: a process that had no token, or one that the server does not accept any more, takes the one
// that another process has stored.
func TestSignedInElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.server()
	s.Store = &oauth.Memory{}
	one, two := w.manager(w.browse), w.manager(w.browse)
	one.handler(t, s)
	h := two.handler(t, s)
	if err := w.ping(h); codeOf(t, err) != guard.AuthFailure {
		t.Fatalf("nobody has signed in: %v", err)
	}
	for range 2 {
		if err := one.SignIn(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		before := len(w.asked())
		if err := w.ping(h); err != nil || len(w.asked()) != before {
			t.Errorf("signed in elsewhere: %v, %d requests for tokens", err, len(w.asked())-before)
		}
		if st, _ := two.Status(s.ID); st.State != oauth.SignedIn {
			t.Errorf("state = %s", st.State)
		}
		w.revoke()
	}
}
