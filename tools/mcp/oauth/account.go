package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/rs/zerolog"
	"golang.org/x/oauth2"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// renewPause is for how long a token that was renewed because it was refused is not renewed again.
const renewPause = time.Minute

// account is the sign-in at one server. It is the auth.OAuthHandler of all connections to it.
type account struct {
	o      Options
	s      Server
	tokens Store
	log    zerolog.Logger

	// turn serialises loading and renewing the token, so that others wait for the result. It is locked before mu.
	turn sync.Mutex

	mu        sync.Mutex
	loaded    bool
	token     *Token      // nil = none; immutable, only replaced
	forced    time.Time   // when it was last renewed because the server had refused it
	reason    string      // why a sign-in is needed; "" = it is not
	challenge http.Header // of the server's latest refusal
	step      bool        // the refusal asked for more scopes
	waiting   *signIn
}

func newAccount(o Options, s Server) *account {
	tokens := s.Store
	if tokens == nil {
		tokens = &Memory{}
	}
	return &account{o: o, s: s, tokens: tokens, log: o.Log.With().Str("server", s.ID).Logger()}
}

// source is an oauth2.TokenSource.
type source func() (*oauth2.Token, error)

// Token implements oauth2.TokenSource.
func (s source) Token() (*oauth2.Token, error) { return s() }

// TokenSource implements auth.OAuthHandler. The source returns nil when there is no token: the request is then made
// without one, and its refusal is passed to Authorize.
func (a *account) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return source(func() (*oauth2.Token, error) {
		a.turn.Lock()
		defer a.turn.Unlock()
		t, err := a.current(ctx)
		if t == nil || err != nil {
			return nil, err
		}
		return &oauth2.Token{AccessToken: string(t.AccessToken), TokenType: "Bearer", Expiry: t.Expiry}, nil
	}), nil
}

// current returns a usable token, renewed when it is due; nil when there is none. The caller holds turn.
func (a *account) current(ctx context.Context) (*Token, error) {
	if err := a.load(ctx); err != nil {
		return nil, err
	}
	t := a.held()
	if t == nil || !t.fresh(a.o.Now()) {
		t = a.reload(ctx)
	}
	switch {
	case t == nil || t.AccessToken == "":
		return nil, nil
	case t.fresh(a.o.Now()):
		return t, nil
	case t.RefreshToken == "":
		a.want("the sign-in has expired")
		return nil, nil
	default:
		return a.renew(ctx, t)
	}
}

func (a *account) held() *Token {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token
}

// load reads the stored token, once. A token that belongs to another configuration is not used and stays in the store.
// The caller holds turn.
func (a *account) load(ctx context.Context) error {
	a.mu.Lock()
	loaded := a.loaded
	a.mu.Unlock()
	if loaded {
		return nil
	}
	t, err := a.tokens.Load(ctx, a.s.ID)
	switch {
	case errors.Is(err, ErrDamaged):
		a.log.Error().Err(err).Msg("stored sign-in not used")
		t = nil
	case err != nil:
		return &guard.Error{
			Code: guard.Transient, Server: a.s.ID,
			Message: "the stored sign-in to " + a.s.ID + " could not be read", Err: err,
		}
	}
	if t = a.fitting(t); t != nil {
		a.log.Debug().Str("issuer", t.Issuer).Msg("stored sign-in loaded")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded, a.token = true, t
	return nil
}

// fitting returns a stored token if it belongs to the configuration; else nil.
func (a *account) fitting(t *Token) *Token {
	if t == nil {
		return nil
	}
	if why := t.bound(a.s); why != "" {
		a.log.Warn().Str("reason", why).Msg("stored sign-in not used")
		return nil
	}
	return t
}

// take copies the answer of a token endpoint into the token.
func (t *Token) take(got *oauth2.Token, now time.Time, asked []string) {
	t.AccessToken, t.RefreshToken, t.Expiry = Secret(got.AccessToken), Secret(got.RefreshToken), got.Expiry
	if got.ExpiresIn > 0 {
		t.Expiry = now.Add(time.Duration(got.ExpiresIn) * time.Second)
	}
	t.Scopes = asked
	if scope, ok := got.Extra("scope").(string); ok {
		t.Scopes = strings.Fields(scope)
	}
}

// keep stores a token and uses it from now on. It is used even if it could not be stored.
func (a *account) keep(ctx context.Context, t Token) error {
	a.set(t)
	return a.tokens.Save(ctx, t)
}

func (a *account) set(t Token) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token, a.loaded = &t, true
	if t.AccessToken != "" {
		a.reason = ""
	}
}

func (a *account) want(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reason = reason
}

// Authorize implements auth.OAuthHandler. It asks nobody: either there is a better token by now, or the request fails
// with auth_failure.
func (a *account) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be reused
	_ = resp.Body.Close()
	more := wantsScope(resp)
	if resp.StatusCode == http.StatusForbidden && !more {
		return &guard.Error{
			Code: guard.AuthFailure, Server: a.s.ID,
			Message: "the server " + a.s.ID + " refuses our credentials (403)",
		}
	}
	a.mu.Lock()
	a.challenge, a.step = http.Header{"Www-Authenticate": slices.Clone(resp.Header.Values("WWW-Authenticate"))}, more
	a.mu.Unlock()
	if more {
		a.want("it asks for more permissions")
		return wanted(a.s.ID, "it asks for more permissions")
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	better, err := a.better(ctx, req.Header.Get("Authorization"))
	if better || err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reason == "" {
		a.reason = "nobody has signed in yet"
		if a.token != nil {
			a.reason = "it does not accept the sign-in any more"
		}
	}
	return wanted(a.s.ID, a.reason)
}

// better reports whether there is a token other than the one that was refused. It renews the token if necessary. The
// caller holds turn.
func (a *account) better(ctx context.Context, sent string) (bool, error) {
	t, err := a.current(ctx)
	if t != nil && err == nil && sent == "Bearer "+string(t.AccessToken) {
		t = a.reload(ctx) // another process may have signed in, or renewed it
		if !t.fresh(a.o.Now()) {
			t, err = a.current(ctx)
		}
	}
	if t == nil || err != nil {
		return false, err
	}
	if subtle.ConstantTimeCompare([]byte(sent), []byte("Bearer "+string(t.AccessToken))) == 0 {
		return true, nil
	}
	now := a.o.Now()
	a.mu.Lock()
	again := !a.forced.IsZero() && now.Sub(a.forced) < renewPause
	a.mu.Unlock()
	if t.RefreshToken == "" || again {
		a.want("it does not accept the sign-in any more")
		return false, nil
	}
	if t, err = a.renew(ctx, t); t == nil || err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forced = now
	return true, nil
}

// wantsScope reports whether an answer asks for more permissions (RFC 6750, 3.1; MCP step-up authorization).
func wantsScope(resp *http.Response) bool {
	if resp.StatusCode != http.StatusForbidden {
		return false
	}
	list, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
}

func (a *account) status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := Status{Server: a.s.ID, State: Unknown, Reason: a.reason}
	if t := a.token; t != nil {
		st.Issuer, st.Scopes, st.Expiry = t.Issuer, slices.Clone(t.Scopes), t.Expiry
		if t.AccessToken != "" {
			st.State = SignedIn
		}
	}
	switch {
	case a.waiting != nil:
		st.State = Waiting
	case a.reason != "":
		st.State = Wanted
	}
	return st
}

func (a *account) forget(ctx context.Context) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	if err := a.tokens.Delete(ctx, a.s.ID); err != nil {
		return fmt.Errorf("forget the sign-in to %s: %w", a.s.ID, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded, a.token, a.forced, a.reason = true, nil, time.Time{}, "it was signed out"
	a.challenge, a.step = nil, false
	return nil
}

func (a *account) pending() *signIn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

func (a *account) cancel() error {
	s := a.pending()
	if s == nil {
		return invalid(a.s.ID, "no sign-in to "+a.s.ID+" is waiting")
	}
	s.stop(ErrCancelled)
	return nil
}
