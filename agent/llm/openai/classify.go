package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/adapter"
)

// complaint is a server's description of a failure. Servers agree on little more than a message.
type complaint struct {
	message, kind, code string
	status              int // if the code is an HTTP status
}

// failure is a complaint reported within a stream.
type failure struct{ complaint complaint }

func (f *failure) Error() string { return f.complaint.text() }

func (c complaint) text() string {
	out := c.message
	if c.code != "" {
		out += " (" + c.code + ")"
	} else if c.kind != "" {
		out += " (" + c.kind + ")"
	}
	return out
}

// has looks for a word in code and type, where servers use identifiers.
func (c complaint) has(words ...string) bool {
	for _, w := range words {
		if strings.Contains(c.code, w) || strings.Contains(c.kind, w) {
			return true
		}
	}
	return false
}

// tooLong recognises a conversation that exceeds the context. Few servers send OpenAI's code, so the message is checked
// too.
func (c complaint) tooLong() bool {
	if c.has("context_length_exceeded", "string_above_max_length", "exceed_context_size") {
		return true
	}
	lower := strings.ToLower(c.message)
	for _, phrase := range []string{
		"context length", "context_length", "maximum context",
		"context window", "context size", "too many tokens",
		"prompt is too long",
		"input is too long", "reduce the length", "request too large", "input token count",
	} {
		if strings.Contains(lower, phrase) {
			return true
		}
	}
	return false
}

// readComplaint understands {"error":{…}}, {"error":"…"}, the same in an array (Gemini), {"message":…} and {"detail":…}
// (FastAPI). Anything else is taken as plain text.
func readComplaint(data []byte) complaint {
	data = bytes.TrimSpace(data)
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return complaint{message: scalar(data)}
	}
	if inner := fields["error"]; len(inner) > 0 {
		var object map[string]json.RawMessage
		if json.Unmarshal(inner, &object) != nil {
			return complaint{message: scalar(inner)}
		}
		fields = object
	}
	c := complaint{message: scalar(fields["message"]), kind: scalar(fields["type"]), code: scalar(fields["code"])}
	if c.message == "" {
		c.message = scalar(fields["detail"])
	}
	if c.kind == "" {
		c.kind = strings.ToLower(scalar(fields["status"]))
	}
	if n, err := strconv.Atoi(c.code); err == nil && n >= 400 && n <= 599 {
		c.status = n
	}
	return c
}

// scalar returns the content of a JSON string, or the text itself. null and empty input are "".
func scalar(data []byte) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	if text := string(data); text != "null" {
		return text
	}
	return ""
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
		if f.complaint.status != 0 {
			e.Status = f.complaint.status
		}
		e.Kind, e.Window = kindOfStream(f.complaint), adapter.Window(f.complaint.message)
		e.RetryAfter = adapter.RetryAfter(x.header, p.o.Now())
		e.Err = errors.New(p.o.Key.Clean(f.complaint.text()))
		x.refusal = f.complaint.has("content_filter", "content_policy") && e.Kind == llm.Invalid
		return e
	case errors.Is(err, errRefused):
		return p.refused(x, e)
	case !x.sent:
		e.Kind, e.Err = llm.Invalid, fmt.Errorf("request was not sent: %s", p.o.Key.Clean(err.Error()))
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

// refused classifies an HTTP status other than success.
func (p *Provider) refused(x *exchange, e *llm.Error) error {
	c := readComplaint(x.body)
	e.Kind, e.Window = kindOfStatus(x.status, c), adapter.Window(c.message)
	e.RetryAfter = adapter.RetryAfter(x.header, p.o.Now())
	x.refusal = e.Kind == llm.Invalid && c.has("content_filter", "content_policy")
	text := p.o.Key.Clean(c.text())
	if text == "" {
		text = http.StatusText(x.status)
	}
	if x.status >= 300 && x.status < 400 {
		text = "the server redirects to another address; set base_url to the final one"
	}
	e.Err = errors.New(text)
	return e
}

func kindOfStatus(status int, c complaint) llm.Kind {
	switch {
	case status >= 500:
		return llm.Unavailable
	case status == http.StatusUnauthorized || status == http.StatusPaymentRequired || status == http.StatusForbidden:
		return llm.Unauthorized
	case c.has("insufficient_quota", "billing", "invalid_api_key"):
		return llm.Unauthorized
	case status == http.StatusRequestEntityTooLarge || c.tooLong():
		return llm.TooLong
	case status == http.StatusTooManyRequests:
		return llm.RateLimited
	case status == http.StatusRequestTimeout:
		return llm.Timeout
	case status == http.StatusConflict || status == http.StatusTooEarly:
		return llm.Unavailable
	default:
		return llm.Invalid
	}
}

// kindOfStream classifies a failure reported within a stream, where there is no status.
func kindOfStream(c complaint) llm.Kind {
	switch {
	case c.status != 0:
		return kindOfStatus(c.status, c)
	case c.code == "garbled":
		return llm.Truncated
	case c.has("insufficient_quota", "billing", "authentication", "permission", "invalid_api_key"):
		return llm.Unauthorized
	case c.tooLong():
		return llm.TooLong
	case c.has("rate_limit", "too_many_requests", "resource_exhausted"):
		return llm.RateLimited
	case c.has("timeout", "deadline_exceeded"):
		return llm.Timeout
	case c.has("invalid", "content_filter", "content_policy", "not_found"):
		return llm.Invalid
	default:
		return llm.Unavailable
	}
}
