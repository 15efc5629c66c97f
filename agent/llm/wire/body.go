// Package wire contains what the adapters of all vendors share: a key that is never printed, bodies with a size limit,
// texts that are safe to log, names of tools that every server accepts, and the tools of requests, encoded and cached.
package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// maxLogged bounds a text for the log, in characters.
const maxLogged = 500

// Key is an API key. Every way of printing it prints "[redacted]".
type Key string

const redacted = "[redacted]"

// String implements fmt.Stringer.
func (Key) String() string { return redacted }

// Format implements fmt.Formatter, so that %x, %q and %#v are covered too.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText implements encoding.TextMarshaler, for JSON and loggers.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Clean removes from a text of the server or the network what must not be logged (the key, line breaks, invalid UTF-8)
// and shortens it.
func (k Key) Clean(text string) string {
	if k != "" {
		text = strings.ReplaceAll(text, string(k), redacted)
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if r := []rune(text); len(r) > maxLogged {
		text = string(r[:maxLogged]) + "…"
	}
	return text
}

// ErrTooBig is the error of a body that exceeds its limit.
var ErrTooBig = errors.New("server's answer is too large")

// The most that Close reads of an unfinished body, so that its connection can be reused: the last chunk of an answer
// follows the event that completes it. If a server keeps the stream open, its connection is closed after drainWait.
const (
	drainBytes = 4 << 10
	drainWait  = 50 * time.Millisecond
)

// LimitBody limits a body to limit bytes. Beyond that, Read fails with ErrTooBig, whereas io.LimitReader would pretend
// that the body ended. Close reads the small rest of an answer.
func LimitBody(body io.ReadCloser, limit int64) io.ReadCloser {
	return &limitedBody{body: body, left: limit}
}

type limitedBody struct {
	body io.ReadCloser
	left int64
	err  error // of the last Read
}

// Read implements io.Reader.
func (c *limitedBody) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, ErrTooBig
	}
	n, err := c.body.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.err = err
	return n, err //nolint:wrapcheck // io.EOF must stay bare
}

// Close implements io.Closer.
func (c *limitedBody) Close() error {
	if c.err == nil && c.left > 0 {
		late := time.AfterFunc(drainWait, func() { _ = c.body.Close() }) // ends the Read
		_, _ = io.CopyN(io.Discard, c.body, drainBytes)                  // an error is harmless here
		late.Stop()
	}
	return c.body.Close() //nolint:wrapcheck // a reader's own error
}

// Departure tells whether a request has left. Its zero value is that of one that has not. Safe for concurrent use.
type Departure struct{ handed, connecting, left atomic.Bool }

// Watch returns the request as it is given to a client that sends it over a connection.
func (d *Departure) Watch(req *http.Request) *http.Request {
	d.handed.Store(true)
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { d.connecting.Store(true) },
		WroteHeaders: func() { d.left.Store(true) },
	}))
}

// Reset forgets a request that the server has refused; another one follows.
func (d *Departure) Reset() {
	d.handed.Store(false)
	d.connecting.Store(false)
	d.left.Store(false)
}

// Left reports whether the server may have the request. A client that opens no connections has sent what it was given.
func (d *Departure) Left() bool {
	return d.handed.Load() && (d.left.Load() || !d.connecting.Load())
}

// Statuses of gateways that have given up waiting for the server behind them, which may go on.
const statusOriginTimeout = 524 // Cloudflare

// MarkUnderWay notes on an error whether the server may have worked on its request: it had it, and neither
// refused it nor said that it failed.
func MarkUnderWay(err error, left bool) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || !left {
		return err
	}
	switch e.Status {
	case http.StatusGatewayTimeout, statusOriginTimeout:
		e.UnderWay = true
	case 0:
		e.UnderWay = e.Kind == llm.Unavailable || e.Kind == llm.Timeout || e.Kind == llm.Oversize
	default:
		begun := e.Kind == llm.Truncated || e.Kind == llm.Timeout || e.Kind == llm.Oversize
		e.UnderWay = e.Status < http.StatusMultipleChoices && begun && !e.Blank
	}
	return err
}

// NameServer notes on an error which server was asked, and why it could not be reached, as its cause says.
func NameServer(err error, base string, cause error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}
	if u, parsed := url.Parse(base); parsed == nil {
		e.Server = u.Host
	}
	if e.Status == 0 {
		e.Unreached = whyUnreached(cause)
	}
	return err
}

// whyUnreached says why there was no connection; "" = there was one, or the error does not say.
func whyUnreached(err error) llm.Unreached {
	op, ofNetwork := errors.AsType[*net.OpError](err)
	_, ofName := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case ofNetwork && op.Op == "proxyconnect":
		return llm.UnreachedProxy
	case ofName:
		return llm.UnreachedName
	case untrusted, noTLS, alert, errors.Is(err, http.ErrSchemeMismatch):
		return llm.UnreachedSecure
	case errors.Is(err, syscall.ECONNREFUSED):
		return llm.UnreachedRefused
	case ofNetwork && op.Op == "dial":
		return llm.UnreachedRoute
	}
	return ""
}

// Ended is the error of a call whose context has ended; left says that its request had left.
func Ended(provider string, err error, left bool) error {
	if left {
		return fmt.Errorf("model %s: %w: %w", provider, err, llm.ErrUnderWay)
	}
	return fmt.Errorf("model %s: %w", provider, err)
}
