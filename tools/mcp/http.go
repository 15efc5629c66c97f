package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"code.dny.dev/ssrf"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxHeader    = 64 << 10 // bytes of an answer's header
	dialLimit    = 10 * time.Second
	streamWait   = 5 * time.Second // for the header of a stream that is optional for servers
	streamFlow   = 2 << 20         // bytes a second of a stream, sustained
	streamFactor = 4               // burst of a stream, in messages of the largest size
	httpRetries  = 3               // to reopen a broken stream
	// idle connections kept to a server; the default of net/http is two
	maxIdle = 64
	// bytes of an event beyond the message: body reports what is too long before the library does
	eventFrame = 64 << 10
)

// httpTransport returns the transport of a server on the network.
func (s *server) httpTransport(c *conn) (sdk.Transport, error) {
	u, err := netrule.CheckURL(s.cfg.URL, netrule.Options{AllowHTTP: true, AllowPrivate: s.cfg.Trust == guard.Trusted})
	if err != nil {
		return nil, blockedURL(s.cfg.ID, err)
	}
	headers, err := guard.Interpolate(s.cfg.Headers, s.callerOf(c.origin))
	if err != nil {
		refused := guard.Refused(s.cfg.ID, "", reason.New(reason.OfThisServer, s.cfg.ID).With(reason.OfError(err)))
		refused.Err = err
		return nil, refused
	}
	var sign auth.OAuthHandler
	if s.cfg.OAuth && s.m.o.OAuth != nil {
		if sign, err = s.m.o.OAuth(s.cfg); err != nil {
			text := "server " + s.cfg.ID + ": the sign-in could not be prepared"
			return nil, &guard.Error{Code: guard.AuthFailure, Server: s.cfg.ID, Message: text, Err: err}
		}
	}
	c.web = &roundTripper{
		c: c, host: u.Host, scheme: u.Scheme, headers: headers,
		base: s.m.o.httpBase(s.cfg.Trust == guard.Trusted, nil),
	}
	client := &http.Client{
		Transport: c.web,
		// redirects are not followed: credentials must not travel
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if c.transport == kindSSE {
		return &sdk.SSEClientTransport{
			Endpoint: u.String(), HTTPClient: client,
			MaxEventSize: s.m.o.MaxMessage + eventFrame,
		}, nil
	}
	return &sdk.StreamableClientTransport{
		Endpoint: u.String(), HTTPClient: client, MaxEventSize: s.m.o.MaxMessage + eventFrame, MaxRetries: httpRetries,
		OAuthHandler: sign,
	}, nil
}

// blockedURL returns the error for an address that must not be reached.
func blockedURL(id string, err error) *guard.Error {
	e := &guard.Error{Code: guard.InvalidInput, Server: id, Message: "server " + id + ": " + err.Error(), Err: err}
	if rule, ok := errors.AsType[*netrule.Error](err); ok {
		e.Message = "server " + id + ": " + rule.Reason.String()
		if rule.Kind == netrule.KindPrivate {
			e = guard.Refused(id, "", reason.New(reason.ServerPrivate, id).With(rule.Reason))
			e.Err = err
		}
	}
	return e
}

// Transport returns the RoundTripper for requests to what a server names, such as its authorization server. It uses
// only Resolver, Dial and CAs of the options.
func (o Options) Transport(named netrule.Named) http.RoundTripper {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	return o.httpBase(named.Trusted, named.CheckAddr)
}

// httpBase returns the transport below: without a proxy and without compression, connecting to checked addresses only.
// check decides about each address of a host; nil = public ones, for a trusted server all.
func (o Options) httpBase(trusted bool, check addressCheck) *http.Transport {
	if check == nil {
		check = func(_, _ string, a netip.Addr) error {
			if trusted {
				return nil
			}
			return netrule.CheckAddr(a)
		}
	}
	return &http.Transport{
		Proxy:                  nil, // an environment variable must not decide where credentials go
		DialContext:            o.guardedDial(trusted, check),
		TLSClientConfig:        &tls.Config{RootCAs: o.CAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialLimit,
		MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    maxIdle,
		DisableCompression:     true, // a compression bomb would be unpacked before its bytes are counted
		ForceAttemptHTTP2:      true,
	}
}

// addressCheck decides about an address to which the host of a request resolves.
type addressCheck func(host, port string, a netip.Addr) error

// guardedDial returns a dial function that resolves a name, checks every address and dials only those.
func (o Options) guardedDial(
	trusted bool, check addressCheck,
) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := o.Dial
	if dial == nil {
		d := &net.Dialer{Timeout: dialLimit}
		if !trusted {
			// the last defence, should the checks before it ever be bypassed
			d.Control = ssrf.New(ssrf.WithAnyPort()).Safe
		}
		dial = d.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		addrs, err := o.resolveHost(ctx, host, trusted)
		if err != nil {
			return nil, err
		}
		for _, a := range addrs { // a single one that may not be reached is an error
			if err := check(host, port, a); err != nil {
				return nil, err
			}
		}
		var errs []error
		for _, a := range addrs {
			conn, err := dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
			if err == nil {
				return conn, nil
			}
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}
}

// resolveHost returns the addresses of a host.
func (o Options) resolveHost(ctx context.Context, host string, trusted bool) ([]netip.Addr, error) {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		name := host
		if !trusted {
			name += "." // absolute, so that no search domain is tried
		}
		if addrs, err = o.Resolver.LookupNetIP(ctx, "ip", name); err != nil {
			return nil, err
		}
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

// roundTripper makes the requests of one connection. It adds the headers, refuses hosts other than the configured one,
// limits the answers, ends with the connection, and remembers how the server answered.
type roundTripper struct {
	c            *conn
	scheme, host string
	headers      map[string]string
	base         *http.Transport

	mu     sync.Mutex
	status int          // of the latest answer
	target string       // host that it redirected to
	fault  *guard.Error // what was wrong with an answer
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.scheme || !strings.EqualFold(req.URL.Host, t.host) {
		id := t.c.s.cfg.ID
		return nil, guard.Refused(id, "", reason.New(reason.ServerMoved, id, cutText(req.URL.Host, 80)))
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(t.c.life, func() { cancel(context.Cause(t.c.life)) })
	release := func() {
		stop()
		cancel(nil)
	}
	out := req.Clone(ctx)
	for name, value := range t.headers {
		out.Header.Set(name, value)
	}
	if add := t.c.s.m.o.Header; add != nil && !t.c.s.dynamic {
		add(ctx, out.Header)
	}
	if f, ok := req.Context().Value(flightKey{}).(*flight); ok {
		f.sent.Store(true)
	}
	resp, err := t.sendRequest(out, cancel)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && req.Context().Err() == nil {
			err = cause
		}
		release()
		return nil, err
	}
	if forgetsSession(req, resp) {
		if f, ok := req.Context().Value(flightKey{}).(*flight); ok {
			f.forgot.Store(true)
			t.c.expireConn()
		}
	}
	t.noteResponse(req, resp)
	stream := isStream(resp)
	resp.Body = t.boundBody(resp, stream, release)
	if resp.StatusCode < http.StatusMultipleChoices {
		resp.ContentLength = -1 // it may be mended
		resp.Body = newMending(resp.Body, stream, t.c.s.logFaults)
	}
	if requestsTools(req) {
		resp.Body = tee{ReadCloser: resp.Body, w: &t.c.tasks, limit: t.c.s.m.o.MaxMessage}
	}
	return resp, nil
}

var errNoStream = errors.New("the server does not answer the request for a stream")

// sendRequest makes the request, and once more if the server only wants another slash at the end of the path.
func (t *roundTripper) sendRequest(req *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	resp, err := t.sendOnce(req, cancel)
	if err != nil {
		return nil, err
	}
	if next := redirectSlash(req, resp); next != nil {
		_ = resp.Body.Close() // the answer is only the redirect
		return t.sendOnce(next, cancel)
	}
	return resp, nil
}

// sendOnce makes a request. It gives up on the optional stream when its header does not come in time: some servers hold
// it back until they have something to say, and the library would wait for it.
func (t *roundTripper) sendOnce(req *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	optional := req.Method == http.MethodGet && t.c.transport == kindHTTP && req.Header.Get("Last-Event-ID") == ""
	if !optional {
		return t.base.RoundTrip(req)
	}
	patience := time.AfterFunc(streamWait, func() { cancel(errNoStream) })
	resp, err := t.base.RoundTrip(req)
	if !patience.Stop() && err == nil {
		_ = resp.Body.Close() // the answer came after we had given up
		err = errNoStream
	}
	if err != nil && errors.Is(context.Cause(req.Context()), errNoStream) {
		return &http.Response{
			StatusCode: http.StatusMethodNotAllowed, Status: "405 Method Not Allowed", Proto: "HTTP/1.1", ProtoMajor: 1,
			ProtoMinor: 1,
			Header:     http.Header{}, Body: http.NoBody, Request: req,
		}, nil
	}
	return resp, err
}

// noteResponse remembers how the server answered, because the library's errors do not contain it.
func (t *roundTripper) noteResponse(req *http.Request, resp *http.Response) {
	if req.Method == http.MethodDelete || req.Method == http.MethodGet && t.c.transport == kindHTTP {
		return // the goodbye and the optional stream may be refused
	}
	target := ""
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		if u, err := req.URL.Parse(resp.Header.Get("Location")); err == nil {
			target = u.Scheme + "://" + u.Host
		}
	}
	t.mu.Lock()
	// once a server has asked for a sign-in, its answers to the library's further attempts mean nothing
	if t.status != http.StatusUnauthorized || resp.StatusCode < 300 {
		t.status, t.target = resp.StatusCode, target
	}
	t.mu.Unlock()
	if f, ok := req.Context().Value(flightKey{}).(*flight); ok {
		f.status.Store(int64(resp.StatusCode))
	}
}

// boundBody limits an answer: a document by its size, a stream by its rate.
func (t *roundTripper) boundBody(resp *http.Response, stream bool, release func()) io.ReadCloser {
	limit := t.c.s.m.o.MaxMessage
	b := &body{
		r: resp.Body, release: release, limit: int64(limit), left: int64(limit), now: t.c.s.m.o.Now,
		fault: t.recordCause,
	}
	if stream {
		b.left = -1
		b.flow = bucket{size: float64(streamFactor * limit), perSecond: streamFlow}
		b.lines = bucket{size: 4 * maxBurst, perSecond: 4 * maxFlow} // a message has about four lines
	}
	return b
}

func isStream(resp *http.Response) bool {
	return strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream")
}

func (t *roundTripper) recordCause(e *guard.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = e
}

// maySpeakSSE reports whether a server that refused the current transport may support the older one (specification,
// backwards compatibility).
func maySpeakSSE(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	if !ok {
		return false
	}
	switch e.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	default:
		return false
	}
}

// statusError is an HTTP status with the error of the library.
type statusError struct {
	status int
	err    error
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %v", e.status, e.err) }

// Unwrap returns the cause.
func (e *statusError) Unwrap() error { return e.err }

// explainError returns the cause of an error of the library.
func (t *roundTripper) explainError(err error) error {
	id := t.c.s.cfg.ID
	if rule, ok := errors.AsType[*netrule.Error](err); ok {
		return blockedURL(id, rule)
	}
	t.mu.Lock()
	status, target, fault := t.status, t.target, t.fault
	t.mu.Unlock()
	if fault != nil {
		return fault
	}
	if isTimeout(err) || status < 300 {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the address may contain a key in its query
		}
		return err
	}
	e := statusFailure(id, status, target, err)
	if status == http.StatusUnauthorized && t.c.s.cfg.OAuth {
		e.Message = "the server " + id + " wants a sign-in; an admin has to begin it"
	}
	return e
}

// statusFailure returns the error for an HTTP status.
func statusFailure(id string, status int, target string, err error) *guard.Error {
	e := &guard.Error{Code: guard.CodeOfStatus(status), Server: id, Err: &statusError{status: status, err: err}}
	switch {
	case target != "":
		e.Code, e.Theirs = guard.InvalidInput, true
		e.Message = fmt.Sprintf("the server %s has moved to %s; write the new address into the configuration", id,
			guard.Line(target, 120))
	case status == http.StatusUnauthorized:
		e.Message = "the server " + id +
			" wants a sign-in (401): give it credentials in headers, or set oauth.enabled = true"
	case status == http.StatusForbidden:
		e.Message = "the server " + id + " refuses our credentials (403)"
	case status == http.StatusNotFound || status == http.StatusGone:
		e.Message = fmt.Sprintf("there is no MCP server at the address of %s (%d)", id, status)
	default:
		e.Message = fmt.Sprintf("the server %s answered with %d %s", id, status, http.StatusText(status))
	}
	return e
}
