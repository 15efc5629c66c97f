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
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/adapter"
	"github.com/zephbot/zephbot/agent/llm/media"
)

const maxErrorBody = 64 << 10

var errRefused = errors.New("server refused the request")

// exchange performs one request and keeps what came back: the status, the headers, and the body if the request was
// refused. Not safe for concurrent use.
type exchange struct {
	contents *media.Contents
	client   *http.Client
	sent     bool
	status   int
	header   http.Header
	body     []byte
}

// send sends the request and returns the body of the answer.
func (x *exchange) send(ctx context.Context, url string, key Key, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err //nolint:wrapcheck // classified by failure
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json",
		"Anthropic-Version": version, "X-Api-Key": string(key), "User-Agent": "zephbot",
	} {
		req.Header.Set(name, value)
	}
	if err := x.contents.Fill(req); err != nil {
		return nil, err //nolint:wrapcheck // classified by failure
	}
	x.sent = true
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // classified and cleaned of addresses by failure
	}
	x.status, x.header = resp.StatusCode, resp.Header
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		// The status matters more than a body that cannot be read to its end.
		x.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
		return nil, errRefused
	}
	return adapter.Lines(adapter.Cap(resp.Body, adapter.MaxBody), adapter.MaxEvent), nil
}

// failure classifies an error. Its text contains no key and no address.
func (p *Provider) failure(ctx, callCtx context.Context, x *exchange, err error, streamed bool) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("model %s: %w", p.o.Name, ctxErr)
	}
	e := &llm.Error{Provider: p.o.Name, Status: x.status, Streamed: streamed}
	var ready *llm.Error
	var told streamError
	var netErr net.Error
	switch {
	case errors.Is(context.Cause(callCtx), errSilence):
		e.Kind, e.Err = llm.Timeout, fmt.Errorf("no data for %s, which is llm.idle_timeout", p.o.Idle)
		return e
	case errors.As(err, &ready):
		ready.Provider, ready.Streamed = p.o.Name, streamed
		return ready
	case errors.Is(err, errRefused):
		kind, message := complaint(x.body)
		e.Kind, e.RetryAfter = kindOf(x.status, kind, message), adapter.RetryAfter(x.header, p.o.Now())
		e.Window = adapter.Window(message)
		if message == "" {
			message = http.StatusText(x.status)
		}
		if x.status >= 300 && x.status < 400 {
			message = "the server redirects to another address; set base_url to the final one"
		}
		e.Err = errors.New(p.o.Key.Clean(message))
		return e
	case errors.As(err, &told): // within the stream
		kind, message := complaint(told.data)
		e.Kind, e.Window = kindOf(0, kind, message), adapter.Window(message)
		e.RetryAfter = adapter.RetryAfter(x.header, p.o.Now())
		e.Err = errors.New(p.o.Key.Clean(message + " (" + kind + ")"))
		return e
	case errors.Is(err, adapter.ErrTooBig):
		e.Kind = llm.Oversize
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
	e.Err = errors.New(p.o.Key.Clean(err.Error()))
	return e
}

// complaint reads {"type":"error","error":{"type":…,"message":…}}; anything else is taken as plain text.
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

// kindOf classifies by the vendor's error type, or by the status if there is none.
func kindOf(status int, kind, message string) llm.Kind {
	lower := strings.ToLower(message)
	long := strings.Contains(lower, "prompt is too long") ||
		strings.Contains(lower, "context window") || strings.Contains(lower, "context limit")
	switch {
	case kind == "request_too_large", status == http.StatusRequestEntityTooLarge, long:
		return llm.TooLong
	case kind == "rate_limit_error", status == http.StatusTooManyRequests:
		return llm.RateLimited
	case kind == "authentication_error", kind == "permission_error", kind == "billing_error",
		status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusPaymentRequired, strings.Contains(lower, "credit balance"):
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
