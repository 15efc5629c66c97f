package openai

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// garbledCode is the code of a failure that frames reports itself: an event that cannot be read.
const garbledCode = "garbled"

// failure is a complaint reported within a stream, or in an answer with status 200.
type failure struct{ complaint complaint.Complaint }

func (f *failure) Error() string { return f.complaint.Text() }

// endedError is the failure of an answer that the server broke off with these words and no others.
func endedError(words string) error { return &failure{complaint: complaint.Complaint{Message: words}} }

// reportedFailure reads a failure that is reported within an answer.
func reportedFailure(data []byte) *failure {
	return &failure{complaint: complaint.Read(http.StatusOK, nil, data, time.Now())}
}

// classifyError converts any error to an llm.Error whose text contains no secret.
func (p *Provider) classifyError(x *exchange, err error) error {
	e := &llm.Error{Provider: p.o.Name, Status: x.status}
	var f *failure
	var ready *llm.Error
	var netErr net.Error
	switch {
	case errors.As(err, &ready):
		ready.Provider = p.o.Name
		return ready
	case errors.As(err, &f):
		return p.complaintError(x, &f.complaint)
	case errors.Is(err, errRefused):
		c := complaint.Read(x.status, x.header, x.body, p.o.Now())
		return p.complaintError(x, &c)
	case !x.sent:
		e.Kind, e.Err = llm.Invalid, fmt.Errorf("request was not sent: %s", p.o.Key.Clean(err.Error()))
		return e
	case errors.Is(err, wire.ErrWebPage):
		return p.elsewhereError(x, &complaint.Complaint{Page: true})
	case errors.Is(err, wire.ErrTooBig):
		e.Kind, e.Err = llm.Oversize, wire.ErrTooBig
		return e
	case errors.As(err, &netErr) && netErr.Timeout():
		e.Kind = llm.Timeout
	case x.status == 0:
		e.Kind = llm.Unavailable
	default:
		e.Kind = llm.Truncated
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err // the address is known from the configuration
	}
	e.Err = errors.New(p.o.Key.Clean(err.Error()))
	return e
}

// complaintError converts what a server said to an error, and notes whether it refused the content.
func (p *Provider) complaintError(x *exchange, c *complaint.Complaint) error {
	limit, size, _ := c.Overflow()
	e := &llm.Error{
		Kind:        c.Kind(),
		Provider:    p.o.Name,
		Status:      cmp.Or(c.Status, x.status),
		RetryAfter:  c.RetryAfter,
		Window:      limit,
		Size:        size,
		Budget:      c.Quota(),
		Unexplained: c.Unexplained(),
		Answer:      c.Affordable(),
	}
	if c.Code == garbledCode {
		e.Kind = llm.Truncated
	}
	x.refusal, x.complaint = c.Refused(), c
	if e.Kind == llm.WrongAddress {
		return p.elsewhereError(x, c)
	}
	e.Err = errors.New(cmp.Or(p.o.Key.Clean(c.Text()), http.StatusText(x.status)))
	return e
}

// elsewhereError is the error of an address at which something else than a model server answers.
func (p *Provider) elsewhereError(x *exchange, c *complaint.Complaint) error {
	return p.misdirectedError(x, c.Elsewhere(complaint.Plain(x.url), p.o.BaseURL, x.status, x.header))
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

// unansweredError is the error of an answer with a status of success in which nothing of an answer was found. begun:
// some thing of it was, and words say what is missing.
func (p *Provider) unansweredError(x *exchange, begun bool, words string) error {
	f := x.frames
	if begun || f.heard {
		return &llm.Error{Kind: llm.Truncated, Status: x.status, Unexplained: !begun, Err: errors.New(words)}
	}
	if err := p.strayError(x, f.odd, f.plain); err != nil {
		return err
	}
	return &llm.Error{
		Kind:        llm.Truncated,
		Status:      x.status,
		Unexplained: true,
		Blank:       true,
		Err:         fmt.Errorf("%s: the answer has nothing in it", words),
	}
}

// strayError is the error of what came instead of an answer; nil = it says nothing. plain: it did not come as
// events, so that it is no keepalive.
func (p *Provider) strayError(x *exchange, head []byte, plain bool) error {
	if len(bytes.TrimSpace(head)) == 0 {
		return nil
	}
	if api := complaint.Foreign(head); api != "" {
		return p.misdirectedError(x, complaint.OtherAPI(api, complaint.Plain(x.url), p.o.BaseURL))
	}
	c, known := complaint.Stray(x.header, head, p.o.Now())
	switch {
	case known:
		return &failure{complaint: c}
	case plain:
		return p.elsewhereError(x, &c)
	default:
		return nil
	}
}
