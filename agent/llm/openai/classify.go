package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/adapter"
	"github.com/zephbot/zephbot/agent/llm/complaint"
)

// garbledCode is the code of a failure that frames reports itself: an event that cannot be read.
const garbledCode = "garbled"

// failure is a complaint reported within a stream, or in an answer with status 200.
type failure struct{ complaint complaint.Complaint }

func (f *failure) Error() string { return f.complaint.Text() }

// ended is the failure of an answer that the server broke off with these words and no others.
func ended(words string) error { return &failure{complaint: complaint.Complaint{Message: words}} }

// reported reads a failure that is reported within an answer.
func reported(data []byte) *failure {
	return &failure{complaint: complaint.Read(http.StatusOK, nil, data, time.Now())}
}

// classify converts any error to an llm.Error whose text contains no secret.
func (p *Provider) classify(x *exchange, err error) error {
	e := &llm.Error{Provider: p.o.Name, Status: x.status}
	var f *failure
	var ready *llm.Error
	var netErr net.Error
	switch {
	case errors.As(err, &ready):
		ready.Provider = p.o.Name
		return ready
	case errors.As(err, &f):
		return p.complained(x, &f.complaint)
	case errors.Is(err, errRefused):
		c := complaint.Read(x.status, x.header, x.body, p.o.Now())
		return p.complained(x, &c)
	case !x.sent:
		e.Kind, e.Err = llm.Invalid, fmt.Errorf("request was not sent: %s", p.o.Key.Clean(err.Error()))
		return e
	case errors.Is(err, adapter.ErrWebPage):
		e.Kind, e.Err = llm.Invalid, adapter.ErrWebPage
		return e
	case errors.Is(err, adapter.ErrTooBig):
		e.Kind, e.Err = llm.Oversize, adapter.ErrTooBig
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

// complained converts what a server said to an error, and notes whether it refused the content.
func (p *Provider) complained(x *exchange, c *complaint.Complaint) error {
	limit, size, _ := c.Overflow()
	e := &llm.Error{
		Kind: c.Kind(), Provider: p.o.Name, Status: cmp.Or(c.Status, x.status), RetryAfter: c.RetryAfter, Window: limit, Size: size, Budget: c.Quota(),
		Unexplained: c.Unexplained(), Answer: c.Affordable(),
	}
	if c.Code == garbledCode {
		e.Kind = llm.Truncated
	}
	x.refusal, x.complaint = c.Refused(), c
	text := cmp.Or(p.o.Key.Clean(c.Text()), http.StatusText(x.status))
	if x.status >= 300 && x.status < 400 {
		text = "the server redirects to another address; set base_url to the final one"
	}
	e.Err = errors.New(text)
	return e
}
