// Package oauth signs in to MCP servers that ask for OAuth 2.1 (MCP 2025-11-25 and 2026-07-28, authorization). The SDK
// implements the protocol: discovery of the resource and of its authorization server, registration of the client, PKCE,
// the resource indicator and the check of the issuer. This package adds what a bot needs in addition: it asks a person
// to open a link, listens on this machine for the browser, accepts the address pasted into the chat when the browser
// runs elsewhere, stores and renews tokens, and limits what a server can make us request.
//
// A sign-in never starts by itself. A server without a token answers with 401, its connection fails with the code
// auth_failure, and this does not change until somebody calls Begin or SignIn. With a stored token no sign-in is
// needed, until its refresh token is refused.
//
// The only grant is the authorization code: a person signs in. Client credentials, where a machine signs in for itself,
// are not part of the SDK's handler for MCP clients and are not supported; neither are DPoP, workload identity and
// enterprise-managed authorization. Such a server needs a token in its headers.
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

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// MaxWait is how long a sign-in waits for a person (seed 001).
const MaxWait = 300 * time.Second

// Server says how to sign in to a server.
type Server struct {
	ID      string
	URL     string // of the MCP endpoint; https, or http on this machine for a trusted server
	Trusted bool   // it and what it names may be in a private network; this machine only if it is here itself

	Scopes []string // to ask for; empty = what the server names
	// CallbackPort is the port on 127.0.0.1 for the browser's redirect; 0 = any free port.
	CallbackPort int
	ClientName   string // name to register with; "" = zephbot
	// ClientID is a client that is already registered. An https address is used as that of a client metadata document;
	// "" registers a new client.
	ClientID     string
	ClientSecret Secret // of ClientID; "" = it has none

	Store Store // "" = in memory
	// Transport carries all requests to the server's metadata and to its authorization server. It must be the guarded
	// transport of mcp.Options, because it decides which addresses may be dialled. Required.
	Transport http.RoundTripper
}

// Options configure a Manager. Only Ask is required.
type Options struct {
	// Ask shows the link to a person who may sign in. It is called once per sign-in and must honour ctx. The link
	// contains no secret of ours, but anybody who opens it signs in with their own account, so show it to admins only.
	Ask func(ctx context.Context, server, link string) error
	// Done is called once for every sign-in that Begin started. A nil err means that it succeeded and that the server
	// can be reconnected.
	Done func(server string, err error)

	// Alone waits until no other process renews the sign-in to a server, and keeps them from it until release. An error
	// fails the renewal for the time being. nil = no other process uses the stores.
	Alone func(ctx context.Context, server string) (release func(), err error)

	Wait time.Duration    // for the person; 0, or more than MaxWait = MaxWait
	Now  func() time.Time // nil = time.Now
	Log  zerolog.Logger
}

// Manager manages the sign-ins of all servers. Its methods are safe for concurrent use.
type Manager struct {
	o Options

	mu       sync.Mutex
	accounts map[string]*account
	ctx      context.Context //nolint:containedctx // of Run, which bounds the goroutines of Begin; nil before and after
	wg       sync.WaitGroup  // for Begin
}

// ErrNotRunning is returned by Begin before and after Run.
var ErrNotRunning = errors.New("sign-ins are not running")

// New checks the options and returns a manager. It starts nothing.
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
	if o.Alone == nil {
		o.Alone = func(context.Context, string) (func(), error) { return func() {}, nil }
	}
	if o.Done == nil {
		o.Done = func(string, error) {}
	}
	return &Manager{o: o, accounts: map[string]*account{}}, nil
}

// Run lets Begin work until ctx ends. It then cancels the sign-ins in progress and returns nil when their listeners are
// closed. It may be called once.
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

// Handler returns the handler that authorizes the requests of a connection. All connections of a server share one; a
// changed configuration replaces it and cancels a sign-in in progress. Handler reads and requests nothing.
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
			a.tokens = old.tokens // tokens that are only in memory stay with their server
		}
		_ = old.cancel() // there may be none
	}
	m.accounts[s.ID] = a
	return a, nil
}

// check returns an error if the configuration makes no sense.
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
	if err := s.Named().CheckURL(u); err != nil {
		return bad("%w", err)
	}
	return nil
}

// Named decides about the addresses that the server names, for its Transport.
func (s Server) Named() netrule.Named {
	u, err := url.Parse(s.URL)
	if err != nil {
		u = &url.URL{} // check refuses it before anything is requested
	}
	return netrule.Named{Server: u, Trusted: s.Trusted}
}

// same compares the settings that a person can change. It ignores the transport, which is new for every connection.
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
		Message: fmt.Sprintf(
			"there is no server %q that signs in with OAuth; set oauth.enabled = true in its configuration",
			guard.Line(id, 80),
		),
	}
}

// Begin starts a sign-in and returns once its listener is open. Options.Ask and Options.Done report the rest. A server
// can have one sign-in at a time.
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

// SignIn signs in and returns when that has succeeded or failed, at the latest after MaxWait and the time of a few
// requests. It does not need Run; it is for the terminal.
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

// Complete accepts the address at which the browser ended, for a browser on another machine. The page cannot be shown
// there, but its address contains the answer. nil means that the answer fits the sign-in in progress, whose outcome is
// reported as usual. After an error, the sign-in continues to wait.
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

// Cancel cancels the sign-in in progress.
func (m *Manager) Cancel(id string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	return a.cancel()
}

// Forget deletes what is stored about a server, so that its next connection needs a sign-in. The authorization server
// is not notified.
func (m *Manager) Forget(ctx context.Context, id string) error {
	a, err := m.account(id)
	if err != nil {
		return err
	}
	_ = a.cancel() // there may be none
	return a.forget(ctx)
}

// State is the state of a sign-in.
type State string

// States of a sign-in.
const (
	Unknown  State = "unknown"         // no request was made yet
	Wanted   State = "wants a sign-in" // somebody has to start one
	Waiting  State = "waiting"         // a sign-in waits for a person
	SignedIn State = "signed in"       // there is a token
)

// Status describes a sign-in, for people. It contains no secrets.
type Status struct {
	Server string
	State  State
	Reason string    // why a sign-in is needed
	Issuer string    // the authorization server; "" = none known
	Scopes []string  // the scopes that were granted
	Expiry time.Time // of the access token, which is renewed automatically; zero = not known
}

// Status describes the sign-in of a server. The bool is false when the server does not use OAuth.
func (m *Manager) Status(id string) (Status, bool) {
	a, err := m.account(id)
	if err != nil {
		return Status{}, false
	}
	return a.status(), true
}
