package guard

import (
	"errors"
	"net/http"

	"github.com/zephbot/zephbot/tools"
)

// Code is what kind of failure a call of a server's tool had (seed 001, structured error codes).
type Code string

// The seven codes.
const (
	Transient     Code = "transient"
	RateLimited   Code = "rate_limited"
	ServerError   Code = "server_error"
	InvalidInput  Code = "invalid_input"
	AuthFailure   Code = "auth_failure"
	NotFound      Code = "not_found"
	PolicyBlocked Code = "policy_blocked"
)

// Retryable says whether the same call may succeed later.
func (c Code) Retryable() bool { return c == Transient || c == RateLimited || c == ServerError }

// Category is the code in the taxonomy of all tools.
func (c Code) Category() tools.Category {
	switch c {
	case Transient:
		return tools.NetworkError
	case RateLimited:
		return tools.RateLimited
	case ServerError:
		return tools.ServerError
	case InvalidInput:
		return tools.InvalidParameters
	case NotFound:
		return tools.ToolNotFound
	case PolicyBlocked:
		return tools.PolicyBlocked
	default:
		return tools.PermanentFailure
	}
}

// suggestions say what to do where the category's own words do not fit.
var suggestions = map[Code]string{
	AuthFailure: "The server did not accept our credentials. Tell the user that an admin has to sign in again; do not repeat the call.",
	Transient:   "The server did not answer as it should. It may work later.",
}

// Error is a failed call of a server's tool. errors.As finds a *tools.Error in it. Message is written for the model; no
// secrets.
type Error struct {
	Code       Code   // "" = the call was cancelled
	Server     string // id
	Tool       string // its own name, without the server
	Message    string
	Suggestion string // "" = the code's or the category's own
	Err        error  // the cause, for the log; may be nil
}

// Error implements error: for the log.
func (e *Error) Error() string {
	text := e.Message
	if e.Code != "" {
		text = string(e.Code) + ": " + text
	}
	switch {
	case e.Server != "" && e.Tool != "":
		text = Qualified(e.Server, e.Tool) + ": " + text
	case e.Server != "":
		text = e.Server + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// As implements the interface of errors.As for *tools.Error.
func (e *Error) As(target any) bool {
	t, ok := target.(**tools.Error)
	if ok {
		*t = e.ToolError()
	}
	return ok
}

// Category is the place of the failure in the taxonomy: by code, finer where the cause says more (a call that took too
// long, one that was cancelled).
func (e *Error) Category() tools.Category {
	switch {
	case e.Code == "":
		return tools.Cancelled
	case e.Code == Transient && e.Err != nil && tools.AsError(e.Err).Category == tools.Timeout:
		return tools.Timeout
	default:
		return e.Code.Category()
	}
}

// ToolError is the failure as the chain knows it.
func (e *Error) ToolError() *tools.Error {
	c := e.Category()
	suggestion := e.Suggestion
	if suggestion == "" && c == e.Code.Category() {
		suggestion = suggestions[e.Code]
	}
	return &tools.Error{
		Category: c, Message: e.Message, Suggestion: suggestion, Err: e.Err,
		Retryable: e.Code.Retryable(),
		Denied:    e.Code == PolicyBlocked,
	}
}

// Mark writes server and code into the trail of a call, for log and audit.
func (e *Error) Mark(trail *tools.Trail) {
	if trail == nil {
		return
	}
	trail.MCPServer, trail.MCPErrorCode = e.Server, string(e.Code)
}

// AsError makes an *Error of what a connection returned: what is one already is kept, with server and tool filled in.
// An error of the network or of time is transient; anything else is a server_error. Errors with a code of their own:
// use CodeOfRPC and CodeOfStatus first.
func AsError(err error, server, tool string) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e != nil {
		own := *e
		if own.Server == "" {
			own.Server = server
		}
		if own.Tool == "" {
			own.Tool = tool
		}
		return &own
	}
	e := &Error{
		Code: ServerError, Server: server, Tool: tool, Err: err,
		Message: "the server " + server + " failed in a way we do not know; the log has the details",
	}
	switch c := tools.AsError(err).Category; c {
	case tools.Cancelled:
		e.Code, e.Message = "", "the call was cancelled"
	case tools.Timeout:
		e.Code, e.Message = Transient, "the server "+server+" did not answer in time"
	case tools.NetworkError:
		e.Code, e.Message = Transient, "the connection to the server "+server+" failed"
	}
	return e
}

// CodeOfStatus is the code of an HTTP status above 399.
func CodeOfStatus(status int) Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return AuthFailure
	case http.StatusNotFound, http.StatusGone:
		return NotFound
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return Transient
	}
	if status >= 500 {
		return ServerError
	}
	return InvalidInput
}

// CodeOfRPC is the code of a JSON-RPC error (JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28).
func CodeOfRPC(code int64) Code {
	switch code {
	case -32601, -32002: // no such method; no such resource
		return NotFound
	case -32602: // invalid parameters
		return InvalidInput
	case -32001: // request timed out, as the reference implementations say it
		return Transient
	case -32042: // the person has to visit a URL first, to sign in
		return AuthFailure
	case -32021: // it wants a capability that we do not give
		return PolicyBlocked
	default:
		return ServerError
	}
}
