// Package oauth signs in to MCP servers that ask for OAuth 2.1 (MCP 2025-11-25 and 2026-07-28, authorization). The
// protocol is the SDK's: discovery of the resource and of its authorization server, registration of the client, PKCE,
// the resource indicator and the check of the issuer. This package adds what a bot needs around it: a person who is
// asked to open a link, a listener on this machine that the browser comes back to, the same address pasted into the
// chat where the browser runs elsewhere, storage of tokens, their renewal, and bounds on what a server may make us
// request.
//
// Nothing starts by itself. A server without a token answers with 401, its connection fails with the code auth_failure,
// and it stays so until somebody calls Begin or SignIn. A token in the store makes that unnecessary, and a refresh
// token that is refused makes it necessary again.
//
// Only the authorization code is offered, that is, a person signs in. Client credentials (a machine signs in for
// itself) are not part of the SDK's own handler for MCP clients and are not offered here, nor are DPoP, workload
// identity and enterprise-managed authorization: such a server needs a token in its headers.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// MaxWait is how long a sign-in waits for a person at most (seed 001).
const MaxWait = 300 * time.Second

// Server says how to sign in to a server.
type Server struct {
	ID      string
	URL     string // of the MCP endpoint; https, or http on this machine for a trusted server
	Trusted bool   // its addresses, and those it names, may be private ones

	Scopes []string // to ask for; empty = what the server names
	// CallbackPort is the port on 127.0.0.1 that the browser comes back to; 0 = any that is free.
	CallbackPort int
	ClientName   string // to register with; "" = zephbot
	// ClientID is a client that is registered already; an https address of a client metadata document is used as such;
	// "" = registers itself.
	ClientID     string
	ClientSecret Secret // of ClientID; "" = it has none

	Store Store // "" = in memory
	// Transport carries all requests to the server's metadata and to its authorization server. It is the guarded one of
	// the connection itself: whether an address may be dialled is decided there. Required.
	Transport http.RoundTripper
}

// Options configure a Manager. Only Ask is required.
type Options struct {
	// Ask shows the link to a person who may sign in. It is called once in a sign-in and has to honour ctx. The link
	// holds no secret of ours, but whoever opens it signs in as himself: show it to admins only.
	Ask func(ctx context.Context, server, link string) error
	// Done is told how a sign-in ended that Begin began; nil err = signed in, and the server may be connected again. It
	// is called once for each.
	Done func(server string, err error)

	Wait time.Duration    // for the person; 0, or more than MaxWait = MaxWait
	Now  func() time.Time // nil = time.Now
	Log  zerolog.Logger
}

// Manager knows who is signed in where. Its methods are safe for concurrent use.
type Manager struct {
	o Options

	mu       sync.Mutex
	accounts map[string]*account
	ctx      context.Context //nolint:containedctx // of Run, which bounds the goroutines of Begin; nil before and after
	wg       sync.WaitGroup  // of Begin
}

// ErrNotRunning is the error of Begin before and after Run.
var ErrNotRunning = errors.New("sign-ins are not running")

// New checks the options; it starts nothing.
func New(o Options) (*Manager, error) {
	if o.Ask == nil {
		return nil, errors.New("oauth: Ask is required")
	}
	if o.Wait <= 0 || o.Wait > MaxWait {
		o.Wait = MaxWait
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Done == nil {
		o.Done = func(string, error) {}
	}
	return &Manager{o: o, accounts: map[string]*account{}}, nil
}

// Run lets Begin work until ctx ends, then breaks off the sign-ins that wait and returns when their listeners are
// closed; always nil. It may be called once.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	m.ctx = ctx
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.ctx = nil
	m.mu.Unlock()
	m.wg.Wait()
	return nil
}

// Handler gives what the transport of a connection signs its requests with. All connections of a server share one; a
// changed configuration makes a new one and breaks off a sign-in that waits for the old. Nothing is read or requested
// yet.
func (m *Manager) Handler(s Server) (auth.OAuthHandler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.accounts[s.ID]
	if old != nil && old.s.same(s) {
		return old, nil
	}
	a := newAccount(m.o, s)
	if old != nil {
		if s.Store == nil && old.s.Store == nil {
			a.tokens = old.tokens // what is only in memory is bound to its server like the rest
		}
		_ = old.cancel() // there may be none
	}
	m.accounts[s.ID] = a
	return a, nil
}

// check says whether the configuration makes sense.
func (s Server) check() error {
	if err := guard.ServerID(s.ID); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("server %s: oauth: %w", s.ID, fmt.Errorf(format, args...))
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "":
		return bad("a server needs a url to sign in to")
	case s.Transport == nil:
		return bad("a transport is required")
	case s.CallbackPort < 0 || s.CallbackPort > 65535:
		return bad("callback_port is %d; want 0 to 65535", s.CallbackPort)
	case s.ClientSecret != "" && s.ClientID == "":
		return bad("client_secret needs client_id")
	case s.ClientSecret != "" && isDocument(s.ClientID):
		return bad("a client that is described by a document has no secret; remove client_secret")
	}
	if err := checkAddress(u, s.Trusted); err != nil {
		return bad("%w", err)
	}
	return nil
}

// same compares what a person may configure; a transport is made anew for every connection.
func (s Server) same(other Server) bool {
	s.Transport, other.Transport = nil, nil
	sameStore := sameStore(s.Store, other.Store)
	s.Store, other.Store = nil, nil
	sameScopes := slices.Equal(s.Scopes, other.Scopes)
	s.Scopes, other.Scopes = nil, nil
	return sameStore && sameScopes && reflect.DeepEqual(s, other)
}

func sameStore(a, b Store) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a).Comparable() && a == b
}

func (m *Manager) account(id string) (*account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.accounts[id]; ok {
		return a, nil
	}
	return nil, &guard.Error{
		Code: guard.NotFound, Server: id,
		Message: fmt.Sprintf("there is no server %q that signs in with OAuth; set oauth.enabled = true in its configuration", guard.Line(id, 80)),
	}
}

// Begin starts a sign-in and returns as soon as its listener is open; Options.Ask and Options.Done tell the rest. A
// server has one sign-in at a time.
func (m *Manager) Begin(id string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx := m.ctx
	if ctx == nil || ctx.Err() != nil {
		return ErrNotRunning
	}
	s, err := a.prepare(ctx)
	if err != nil {
		return err
	}
	m.wg.Go(func() { m.o.Done(id, s.run(ctx)) })
	return nil
}

// SignIn signs in and returns when that has succeeded or failed, after MaxWait and some requests at most. It needs no
// Run: for the terminal.
func (m *Manager) SignIn(ctx context.Context, id string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	s, err := a.prepare(ctx)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// Complete takes the address at which the browser ended, for a browser that runs on another machine: there the page
// cannot be shown, but its address holds what we need. nil means that it fits the sign-in that waits; how that goes on
// is told as in any other case. After an error the sign-in still waits.
func (m *Manager) Complete(id, redirectedURL string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	s := a.pending()
	if s == nil {
		return invalid(id, "no sign-in to "+id+" is waiting; begin one first")
	}
	return s.complete(redirectedURL)
}

// Cancel breaks off the sign-in that waits.
func (m *Manager) Cancel(id string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	return a.cancel()
}

// Forget deletes what is stored of a server: the next connection wants a sign-in. The authorization server is not told.
func (m *Manager) Forget(ctx context.Context, id string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	_ = a.cancel() // there may be none
	return a.forget(ctx)
}

// State says where a server stands.
type State string

// The states.
const (
	Unknown  State = "unknown"         // no request was made yet
	Wanted   State = "wants a sign-in" // somebody has to begin one
	Waiting  State = "waiting"         // a sign-in waits for a person
	SignedIn State = "signed in"       // there is a token
)

// Status describes a server for people. It holds no secrets.
type Status struct {
	Server string
	State  State
	Reason string    // why a sign-in is wanted
	Issuer string    // the authorization server; "" = none known
	Scopes []string  // that were granted
	Expiry time.Time // of the access token, which is renewed by itself; zero = not said
}

// Status describes a server; false when it does not sign in with OAuth.
func (m *Manager) Status(id string) (Status, bool) {
	a, err := m.account(id)
	if err != nil {
		return Status{}, false
	}
	return a.status(), true
}
