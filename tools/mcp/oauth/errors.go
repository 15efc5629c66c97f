package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Errors of a sign-in that need no look at the log.
var (
	// errNobody means that nobody signed in within the time limit.
	errNobody = errors.New("nobody signed in in time")
	// ErrCancelled means that the sign-in was cancelled.
	ErrCancelled = errors.New("the sign-in was cancelled")
	// ErrNotStored means that the sign-in is lost when the program ends.
	ErrNotStored = errors.New("the sign-in could not be stored")
)

// maxForeign limits how much of a foreign text is shown, in characters.
const maxForeign = 300

// denied is an answer of the authorization server with an error instead of a code (RFC 6749, 4.1.2.1).
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

// wanted returns the error of a request to a server that needs a sign-in.
func wanted(server, reason string) *guard.Error {
	return &guard.Error{
		Code: guard.AuthFailure, Server: server,
		Message: "the server " + server + " wants a sign-in: " + reason + "; an admin has to begin it",
	}
}

// refusedAddress returns the error for an address that a server named and that must not be used.
func refusedAddress(server string, err error) *guard.Error {
	why := reason.New(reason.SignInAddress, server)
	if rule, ok := errors.AsType[*netrule.Error](err); ok {
		why = why.With(rule.Reason)
	}
	e := guard.Refused(server, "", why)
	e.Err = err
	return e
}

// failure returns the error with which a sign-in ended. Errors of the library may quote answers that contain secrets,
// so their text is scrubbed by w and they are not wrapped.
func failure(server string, w *wire, err error) error {
	e := &guard.Error{Code: guard.AuthFailure, Server: server, Err: err}
	at := "the sign-in to " + server
	switch no := (*denied)(nil); {
	case errors.Is(err, ErrNotStored):
		e.Code, e.Message = guard.ServerError,
			at+" succeeded, but it could not be stored: it is lost when the program ends; the log has the details"
		return e
	case errors.Is(err, errNobody):
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
		e.Message = fmt.Sprintf("%s failed: the authorization server does not let us register (%s); register a "+
			"client there and set oauth.client_id", at, guard.Line(dcr.ErrorCode, 60))
	case errors.Is(err, context.Canceled):
		e.Message, e.Err = at+" was cancelled", ErrCancelled
	case errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Message = guard.Transient, at+" failed: the other side did not answer in time"
	default:
		e.Message = at + " failed: " + e.Err.Error()
	}
	return e
}

// answerOf returns the error that a token endpoint reported, without the raw answer.
func answerOf(e *oauth2.RetrieveError) *denied {
	d := &denied{code: guard.Line(e.ErrorCode, 60), text: guard.Line(e.ErrorDescription, maxForeign)}
	if d.code == "" && e.Response != nil {
		d.code = fmt.Sprintf("%d %s", e.Response.StatusCode, http.StatusText(e.Response.StatusCode))
	}
	return d
}

// codeOf distinguishes a refusal from a temporary failure.
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
