package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// The ends of a sign-in that nobody has to look for in a log.
var (
	// ErrNobody is the cause when nobody has signed in in time.
	ErrNobody = errors.New("nobody signed in in time")
	// ErrCancelled is the cause when a sign-in was broken off.
	ErrCancelled = errors.New("the sign-in was cancelled")
	// ErrNotStored is the cause when the sign-in is good until the program ends, and not longer.
	ErrNotStored = errors.New("the sign-in could not be stored")
)

// maxForeign bounds what is shown of another side's words, in characters.
const maxForeign = 300

// denied is an answer of the authorization server that is no code (RFC 6749, 4.1.2.1).
type denied struct{ code, text string }

// Error implements error.
func (d *denied) Error() string {
	if d.text == "" {
		return "the authorization server answered " + d.code
	}
	return "the authorization server answered " + d.code + ": " + d.text
}

func invalid(server, message string) *guard.Error {
	return &guard.Error{Code: guard.InvalidInput, Server: server, Message: message}
}

// wanted is the error of a request to a server that wants a sign-in.
func wanted(server, reason string) *guard.Error {
	return &guard.Error{
		Code: guard.AuthFailure, Server: server,
		Message: "the server " + server + " wants a sign-in: " + reason + "; an admin has to begin it",
	}
}

// refusedAddress is the error of an address that a server named and that we do not touch.
func refusedAddress(server string, err error) *guard.Error {
	e := &guard.Error{
		Code: guard.PolicyBlocked, Server: server, Err: err,
		Message: "the server " + server + " names an address for the sign-in that may not be used",
	}
	if rule, ok := errors.AsType[*netrule.Error](err); ok {
		e.Message += ": " + rule.Reason
	}
	return e
}

// failure puts the end of a sign-in into words. The library's errors may quote answers that hold secrets, so their text
// goes through w and their chain ends.
func failure(server string, w *wire, err error) error {
	e := &guard.Error{Code: guard.AuthFailure, Server: server, Err: err}
	at := "the sign-in to " + server
	switch no := (*denied)(nil); {
	case errors.Is(err, ErrNotStored):
		e.Code, e.Message = guard.ServerError,
			at+" succeeded, but it could not be stored: it is lost when the program ends; the log has the details"
		return e
	case errors.Is(err, ErrNobody):
		e.Message = at + " failed: nobody signed in in time; begin it again"
		return e
	case errors.Is(err, ErrCancelled):
		e.Message = at + " was cancelled"
		return e
	case errors.As(err, &no):
		e.Message = at + " failed: " + no.Error()
		return e
	}
	if refusal := w.refused(); refusal != nil {
		return refusedAddress(server, refusal)
	}
	e.Err = errors.New(guard.Line(w.scrub(err), maxForeign))
	switch answer, dcr := (*oauth2.RetrieveError)(nil), (*oauthex.ClientRegistrationError)(nil); {
	case errors.As(err, &answer):
		no := answerOf(answer)
		e.Err, e.Message = no, at+" failed: "+no.Error()
		e.Code = codeOf(answer)
	case errors.As(err, &dcr):
		e.Message = fmt.Sprintf("%s failed: the authorization server does not let us register (%s); register a client there and set oauth.client_id", at, guard.Line(dcr.ErrorCode, 60))
	case errors.Is(err, context.Canceled):
		e.Message, e.Err = at+" was cancelled", ErrCancelled
	case errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Message = guard.Transient, at+" failed: the other side did not answer in time"
	default:
		e.Message = at + " failed: " + e.Err.Error()
	}
	return e
}

// answerOf is what a token endpoint said, without the answer itself.
func answerOf(e *oauth2.RetrieveError) *denied {
	d := &denied{code: guard.Line(e.ErrorCode, 60), text: guard.Line(e.ErrorDescription, maxForeign)}
	if d.code == "" && e.Response != nil {
		d.code = fmt.Sprintf("%d %s", e.Response.StatusCode, http.StatusText(e.Response.StatusCode))
	}
	return d
}

// codeOf tells a refusal from a failure that may pass.
func codeOf(e *oauth2.RetrieveError) guard.Code {
	if e.Response == nil {
		return guard.AuthFailure
	}
	switch code := guard.CodeOfStatus(e.Response.StatusCode); {
	case code.Retryable():
		return code
	default:
		return guard.AuthFailure
	}
}
