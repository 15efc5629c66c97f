package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	callbackPath = "/callback"
	maxLink      = 8 << 10 // bytes of the link that a person is asked to open
	closeLimit   = 2 * time.Second
)

// signIn is one attempt of a person to sign in.
type signIn struct {
	a        *account
	w        *wire
	listener net.Listener
	redirect string // http://127.0.0.1:port/callback
	prior    *Token // what is known from an earlier sign-in; may be nil
	answers  chan *auth.AuthorizationResult
	stopped  chan struct{}

	resource, clientID string // of the link; used only in run

	mu     sync.Mutex
	cause  error  // why it was stopped
	state  string // of the link; "" = nobody has been asked yet
	taken  bool   // an answer has arrived
	refuse error  // set when the answer was a refusal
}

// prepare opens the listener of a sign-in. The caller has to call run afterwards.
func (a *account) prepare(ctx context.Context) (*signIn, error) {
	s := &signIn{a: a, w: newWire(a.s), answers: make(chan *auth.AuthorizationResult, 1), stopped: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting != nil {
		return nil, invalid(a.s.ID, "a sign-in to "+a.s.ID+
			" is waiting already; open the link that was sent, or cancel it first")
	}
	port := strconv.Itoa(a.s.CallbackPort)
	var err error
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", local(port)); err != nil {
		refused := guard.Refused(a.s.ID, "", reason.New(reason.SignInPort, port, a.s.ID))
		refused.Err = err
		return nil, refused
	}
	s.redirect = "http://" + s.listener.Addr().String() + callbackPath
	a.waiting = s
	return s, nil
}

// stop ends the sign-in. The first cause counts.
func (s *signIn) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
		close(s.stopped)
	}
}

func (s *signIn) stopCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// run signs in. When it returns, the listener is closed.
func (s *signIn) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.stopped:
			cancel(s.stopCause())
		case <-ctx.Done():
		}
	})
	server := s.server()
	wg.Go(func() { _ = server.Serve(s.listener) }) // it ends when it is closed
	err := s.flow(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrNotStored) {
		err = context.Cause(ctx) // the library does not always return it
	}
	s.close(ctx, server)
	cancel(nil)
	wg.Wait()
	if err != nil {
		err = failure(s.a.s.ID, s.w, err)
		s.a.log.Warn().Err(err).Msg("sign-in failed")
		return err
	}
	s.a.log.Info().Msg("signed in")
	return nil
}

// close shuts down the listener, but lets a page that is being sent arrive.
func (s *signIn) close(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	_ = s.listener.Close() // in case Serve has not started yet
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	if s.a.waiting == s {
		s.a.waiting = nil
	}
}

// flow runs the whole protocol, from discovery to the stored token.
func (s *signIn) flow(ctx context.Context) error {
	if err := s.recall(ctx); err != nil {
		return err
	}
	status, challenge, err := s.refusal(ctx)
	if err != nil {
		return err
	}
	h, err := auth.NewAuthorizationCodeHandler(s.config(status == http.StatusForbidden))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.a.s.URL, http.NoBody)
	if err != nil {
		return err
	}
	return h.Authorize(ctx, req, &http.Response{StatusCode: status, Header: challenge, Body: http.NoBody, Request: req})
}

// recall loads what is known from an earlier sign-in.
func (s *signIn) recall(ctx context.Context) error {
	s.a.turn.Lock()
	defer s.a.turn.Unlock()
	if err := s.a.load(ctx); err != nil {
		return err
	}
	s.prior = s.a.held()
	return nil
}

// refusal returns the server's answer to a request without a token, which says where to sign in, and for what. Without
// that information the well-known addresses are tried.
func (s *signIn) refusal(ctx context.Context) (status int, challenge http.Header, err error) {
	a := s.a
	a.mu.Lock()
	known, step := a.challenge, a.step
	a.mu.Unlock()
	switch {
	case known != nil && step:
		return http.StatusForbidden, known, nil
	case known != nil:
		return http.StatusUnauthorized, known, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.s.URL,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.w.client().Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only its header is needed
	s.w.used()
	if resp.StatusCode == http.StatusUnauthorized {
		return resp.StatusCode, resp.Header, nil
	}
	return http.StatusUnauthorized, http.Header{}, nil
}

// config returns the library's configuration of the sign-in. more means that the server asked for more permissions than
// we have.
func (s *signIn) config(more bool) *auth.AuthorizationCodeHandlerConfig {
	cfg := s.a.s
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:              s.redirect,
		AuthorizationCodeFetcher: s.ask,
		RequestRefreshToken:      true,
		AcceptUnadvertisedIss:    true, // it is compared anyway
		Client:                   s.w.client(),
		NewTokenSource:           s.signedIn,
		ScopeFilter:              func(named []string) []string { return s.scopes(named, more) },
	}
	name := cfg.ClientName
	if name == "" {
		name = "zephbot"
	}
	register := &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{s.redirect}, ClientName: name, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
	switch {
	case cfg.ClientID == "":
		c.DynamicClientRegistrationConfig = register
	case isDocument(cfg.ClientID):
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: cfg.ClientID}
		c.DynamicClientRegistrationConfig = register
	default:
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: cfg.ClientID}
		if cfg.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: string(cfg.ClientSecret)}
		}
		// the client belongs to one issuer; a server that names another one later does not get its secret
		if s.prior != nil {
			c.PreregisteredClient.Issuer = s.prior.Issuer
		}
	}
	return c
}

// scopes returns the scopes to ask for: the configured ones, or else the ones that the server names. If the server
// wants more than we have, it returns both.
func (s *signIn) scopes(named []string, more bool) []string {
	list := slices.Clone(named)
	switch {
	case more:
		list = append(list, s.a.s.Scopes...)
		if s.prior != nil {
			list = append(list, s.prior.Scopes...)
		}
	case len(s.a.s.Scopes) > 0:
		list = slices.Clone(s.a.s.Scopes)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ask shows the link and waits for the answer.
func (s *signIn) ask(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	s.w.used()
	u, err := url.Parse(args.URL)
	if err != nil || len(args.URL) > maxLink {
		return nil, errors.New("the address of the sign-in page is not valid, or too long")
	}
	if err := errors.Join(s.w.named.CheckURL(u), s.w.checkEndpoints()); err != nil {
		s.w.refuse(err)
		return nil, err
	}
	if !s.w.offersS256() {
		return nil, errors.New("the authorization server does not offer PKCE with S256")
	}
	q := u.Query()
	s.resource, s.clientID = q.Get("resource"), q.Get("client_id")
	s.mu.Lock()
	s.state = q.Get("state")
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, s.a.o.Wait, errNobody)
	defer cancel()
	if err := s.a.o.Ask(ctx, s.a.s.ID, args.URL); err != nil {
		return nil, fmt.Errorf("show the link: %w", err)
	}
	select {
	case answer := <-s.answers:
		s.mu.Lock()
		defer s.mu.Unlock()
		return answer, s.refuse
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// signedIn stores the result of the sign-in.
func (s *signIn) signedIn(ctx context.Context, cfg *oauth2.Config, got *oauth2.Token) (oauth2.TokenSource, error) {
	issuer, err := s.w.issuer(cfg.Endpoint.TokenURL)
	if err != nil {
		return nil, err
	}
	own := s.a.s
	t := Token{
		Server: own.ID, URL: own.URL, ConfiguredID: own.ClientID, Issuer: issuer,
		ClientID: s.clientID, TokenURL: cfg.Endpoint.TokenURL, AuthStyle: int(cfg.Endpoint.AuthStyle),
		Resource: s.resource,
	}
	if t.ClientID != own.ClientID {
		t.ClientSecret = Secret(cfg.ClientSecret)
	}
	t.take(got, s.a.o.Now(), cfg.Scopes)
	s.a.turn.Lock()
	defer s.a.turn.Unlock()
	s.a.mu.Lock()
	s.a.challenge, s.a.step, s.a.forced = nil, false, time.Time{}
	s.a.mu.Unlock()
	if err := s.a.keep(ctx, t); err != nil {
		s.a.log.Error().Err(err).Msg("sign-in not stored; it is lost when the program ends")
		return nil, ErrNotStored
	}
	return oauth2.StaticTokenSource(got), nil
}
