package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

var errRefused = errors.New("server refused the request")

// exchange performs one request and keeps what came back: the status, the headers, and the body if the request was
// refused. Not safe for concurrent use.
type exchange struct {
	contents  *media.Contents
	client    *http.Client
	sent      bool
	departure wire.Departure
	address   string // of the request
	status    int
	header    http.Header
	body      []byte
	refusal   bool // rejected because of its content
	ended     bool // the stream ended as it should, in whatever words
	events    *stream
	// complaint is what the server said instead of an answer.
	complaint *complaint.Complaint
}

// sendBody sends the request and returns the body of the answer.
func (x *exchange) sendBody(ctx context.Context, url string, key Key, body []byte) (io.ReadCloser, error) {
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
	x.sent, x.address = true, complaint.Plain(req.URL)
	resp, err := x.client.Do(x.departure.Watch(req))
	if err != nil {
		return nil, err //nolint:wrapcheck // classified and cleaned of addresses by failure
	}
	x.status, x.header = resp.StatusCode, resp.Header
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		x.body = complaint.Body(resp.Body)
		_ = resp.Body.Close()
		return nil, errRefused
	}
	return wire.LimitLines(wire.LimitBody(resp.Body, wire.MaxBody), wire.MaxEvent), nil
}

// classifyFailure classifies an error. Its text contains no key and no address.
func (p *Provider) classifyFailure(ctx, callCtx context.Context, x *exchange, err error, streamed bool) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return wire.Ended(p.o.Name, ctxErr, x.departure.Left())
	}
	classified := wire.MarkUnderWay(p.classifyLiving(callCtx, x, err, streamed), x.departure.Left())
	return wire.NameServer(classified, p.o.BaseURL, err)
}

// classifyLiving classifies an error of a call whose caller still waits.
func (p *Provider) classifyLiving(callCtx context.Context, x *exchange, err error, streamed bool) error {
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
		c := complaint.Read(x.status, x.header, x.body, p.o.Now())
		return p.complaintError(x, &c, streamed)
	case errors.As(err, &told): // within the stream
		c := complaint.Read(http.StatusOK, x.header, told.data, p.o.Now())
		return p.complaintError(x, &c, streamed)
	case errors.Is(err, wire.ErrWebPage):
		return p.elsewhereError(x, &complaint.Complaint{Page: true})
	case errors.Is(err, wire.ErrTooBig):
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

// complaintError converts what a server said to an error.
func (p *Provider) complaintError(x *exchange, c *complaint.Complaint, streamed bool) error {
	limit, size, _ := c.Overflow()
	x.refusal, x.complaint = c.Refused(), c
	if c.Kind() == llm.WrongAddress {
		return p.elsewhereError(x, c)
	}
	text := cmp.Or(p.o.Key.Clean(c.Text()), http.StatusText(x.status))
	return &llm.Error{
		Kind:        c.Kind(),
		Provider:    p.o.Name,
		Status:      cmp.Or(c.Status, x.status),
		RetryAfter:  c.RetryAfter,
		Streamed:    streamed,
		Window:      limit,
		Size:        size,
		Budget:      c.Quota(),
		Unexplained: c.Unexplained(),
		Answer:      c.Affordable(),
		Err:         errors.New(text),
	}
}

// elsewhereError is the error of an address at which something else than a model server answers.
func (p *Provider) elsewhereError(x *exchange, c *complaint.Complaint) error {
	return p.misdirectedError(x, c.Elsewhere(x.address, p.o.BaseURL, x.status, x.header))
}

// misdirectedError is the error of an address at which no model server with this API answers, as text says.
func (p *Provider) misdirectedError(x *exchange, text string) error {
	return &llm.Error{
		Kind:     llm.WrongAddress,
		Provider: p.o.Name,
		Status:   x.status,
		Err:      errors.New(p.o.Key.Clean(text)),
	}
}

// unansweredError is the error of an answer with a status of success that has no end. begun:
// something of an answer has come.
func (p *Provider) unansweredError(x *exchange, begun bool) error {
	const words = "stream ended without a stop_reason"
	s := x.events
	if begun || s == nil || s.heard {
		return &llm.Error{Kind: llm.Truncated, Status: x.status, Err: errors.New(words)}
	}
	if len(bytes.TrimSpace(s.odd)) > 0 {
		if api := complaint.Foreign(s.odd); api != "" {
			return p.misdirectedError(x, complaint.OtherAPI(api, x.address, p.o.BaseURL))
		}
		c, known := complaint.Stray(x.header, s.odd, p.o.Now())
		if known {
			return streamError{s.odd}
		}
		if s.plain {
			return p.elsewhereError(x, &c)
		}
	}
	return &llm.Error{
		Kind:        llm.Truncated,
		Status:      x.status,
		Unexplained: true,
		Blank:       true,
		Err:         errors.New(words + ": the answer has nothing in it"),
	}
}
