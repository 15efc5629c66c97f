package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/zephbot/zephbot/agent/llm"
)

const (
	maxBody       = 32 << 20 // bytes of an answer
	maxErrorBody  = 64 << 10
	maxRetryAfter = 24 * time.Hour
)

var (
	errRefused = errors.New("server refused the request")
	errTooBig  = errors.New("server's answer is too large")
)

// exchange carries one request and keeps what the SDK loses: the headers and the body of a refusal. Not safe for concurrent use.
type exchange struct {
	client *http.Client
	sent   bool
	status int
	header http.Header
	body   []byte
}

// Do implements the SDK's HTTPClient.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // classified and cleaned of addresses by failure
	}
	x.status, x.header = resp.StatusCode, resp.Header
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		x.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // the status says more than a body that breaks off
		_ = resp.Body.Close()
		return nil, errRefused
	}
	resp.Body = &capped{body: resp.Body, left: maxBody}
	return resp, nil
}

// capped fails beyond its limit, where io.LimitReader would pretend that the body ended.
type capped struct {
	body io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooBig
	}
	n, err := c.body.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err //nolint:wrapcheck // io.EOF must stay bare
}

// Close implements io.Closer.
func (c *capped) Close() error { return c.body.Close() } //nolint:wrapcheck // a reader's own error

// failure classifies what went wrong; its text holds no key and no address.
func (p *Provider) failure(ctx, callCtx context.Context, x *exchange, err error, streamed bool) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("model %s: %w", p.o.Name, ctxErr)
	}
	e := &llm.Error{Provider: p.o.Name, Status: x.status, Streamed: streamed}
	var ready *llm.Error
	var api *sdk.Error
	var netErr net.Error
	switch {
	case errors.Is(context.Cause(callCtx), errSilence):
		e.Kind, e.Err = llm.Timeout, fmt.Errorf("no data for %s", p.o.Timeout)
		return e
	case errors.As(err, &ready):
		ready.Provider, ready.Streamed = p.o.Name, streamed
		return ready
	case errors.Is(err, errRefused):
		kind, message := complaint(x.body)
		e.Kind, e.RetryAfter = kindOf(x.status, kind, message), p.retryAfter(x.header)
		if message == "" {
			message = http.StatusText(x.status)
		}
		if x.status >= 300 && x.status < 400 {
			message = "server redirects to another address; set base_url to the final one"
		}
		e.Err = errors.New(p.clean(message))
		return e
	case errors.As(err, &api): // within the stream
		kind, message := complaint([]byte(api.RawJSON()))
		e.Kind, e.RetryAfter, e.Err = kindOf(0, kind, message), p.retryAfter(x.header), errors.New(p.clean(message+" ("+kind+")"))
		return e
	case errors.Is(err, errTooBig):
		e.Kind = llm.Invalid
	case !x.sent:
		e.Kind = llm.Invalid
	case errors.As(err, &netErr) && netErr.Timeout():
		e.Kind = llm.Timeout
	case x.status == 0:
		e.Kind = llm.Unavailable
	default:
		e.Kind = llm.Truncated
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address is known from the configuration
	}
	e.Err = errors.New(p.clean(err.Error()))
	return e
}

// complaint reads {"type":"error","error":{"type":…,"message":…}}; anything else is taken as text.
func complaint(data []byte) (kind, message string) {
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &body) == nil && (body.Error.Type != "" || body.Error.Message != "") {
		return body.Error.Type, body.Error.Message
	}
	return "", string(bytes.TrimSpace(data))
}

// kindOf classifies by the vendor's error type, and by the status where there is none.
func kindOf(status int, kind, message string) llm.Kind {
	lower := strings.ToLower(message)
	long := strings.Contains(lower, "prompt is too long") || strings.Contains(lower, "context window") || strings.Contains(lower, "context limit")
	switch {
	case kind == "request_too_large", status == http.StatusRequestEntityTooLarge, long:
		return llm.TooLong
	case kind == "rate_limit_error", status == http.StatusTooManyRequests:
		return llm.RateLimited
	case kind == "authentication_error", kind == "permission_error", kind == "billing_error",
		status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired, strings.Contains(lower, "credit balance"):
		return llm.Unauthorized
	case kind == "timeout_error", status == http.StatusRequestTimeout:
		return llm.Timeout
	case kind == "overloaded_error", kind == "api_error", status >= 500:
		return llm.Unavailable
	case kind == "invalid_request_error", kind == "not_found_error", status >= 300:
		return llm.Invalid
	default:
		return llm.Unavailable
	}
}

// retryAfter reads Retry-After as seconds or a date (RFC 9110, 10.2.3). 0 = not said.
func (p *Provider) retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 {
		if n > maxRetryAfter.Seconds() {
			return maxRetryAfter
		}
		return time.Duration(n * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(p.o.Now()), 0), maxRetryAfter)
	}
	return 0
}

// clean takes what must not be logged out of a text of the server or of the net, and shortens it.
func (p *Provider) clean(text string) string {
	text = strings.ReplaceAll(text, string(p.o.Key), redacted)
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if r := []rune(text); len(r) > 500 {
		text = string(r[:500]) + "…"
	}
	return text
}
