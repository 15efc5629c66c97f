package guard

import (
	"errors"
	"net/http"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// Code classifies why a call of a server's tool failed (seed 001, structured error codes).
type Code string

// Codes.
const (
	Transient     Code = "transient"
	RateLimited   Code = "rate_limited"
	ServerError   Code = "server_error"
	InvalidInput  Code = "invalid_input"
	AuthFailure   Code = "auth_failure"
	NotFound      Code = "not_found"
	PolicyBlocked Code = "policy_blocked"
)

// Retryable reports whether the same call may succeed later.
func (c Code) Retryable() bool { return c == Transient || c == RateLimited || c == ServerError }

// Category returns the category of tools.Error that the code belongs to.
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

// suggestions replace the suggestion of the category for some codes.
var suggestions = map[Code]string{
	AuthFailure: "The server did not accept our credentials. Tell the user that an admin has to sign in again; do " +
		"not repeat the call.",
	Transient: "The server did not answer as it should. It may work later.",
}

// Error is a failed call of a server's tool. errors.As finds a *tools.Error in it. Message is written for the model and
// contains no secrets.
type Error struct {
	Code       Code   // "" = the call was cancelled
	Server     string // id
	Tool       string // the tool's own name, without the server
	Message    string
	Suggestion string // "" = the one of the code or category
	// Reason says to people why the call was refused; set by Refused only.
	Reason reason.Reason
	Theirs bool  // Message contains words of the server
	Begun  bool  // the call had reached the server, which may have done its work, or a part of it
	Err    error // the cause, for the log; may be nil
}

// Refused returns the error of what is not allowed, in a call of a server's tool or before one. It has not reached the
// server. tool may be empty.
func Refused(server, tool string, why reason.Reason) *Error {
	return &Error{Code: PolicyBlocked, Server: server, Tool: tool, Message: why.String(), Reason: why}
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As implements the interface of errors.As for *tools.Error.
func (e *Error) As(target any) bool {
	t, ok := target.(**tools.Error)
	if ok {
		*t = e.ToolError()
	}
	return ok
}

// Category returns the category of the failure: that of the code, or a more precise one if the cause is a timeout or a
// cancellation. A call that has begun is none that could not run.
func (e *Error) Category() tools.Category {
	switch {
	case e.Code == "":
		return tools.Cancelled
	case e.Code == Transient && e.Err != nil && tools.AsError(e.Err).Category == tools.Timeout:
		return tools.Timeout
	}
	switch c := e.Code.Category(); {
	case e.Begun && (c == tools.PolicyBlocked || c == tools.InvalidParameters):
		return tools.PermanentFailure
	default:
		return c
	}
}

// ToolError returns the failure as a *tools.Error, for the chain.
func (e *Error) ToolError() *tools.Error {
	c := e.Category()
	suggestion := e.Suggestion
	if suggestion == "" && (c == e.Code.Category() || c == tools.PermanentFailure) {
		suggestion = suggestions[e.Code]
	}
	var from source.Source
	if e.Theirs {
		from = source.MCP(e.Server)
	}
	return &tools.Error{
		Untrusted: from,
		Category:  c, Message: e.Message, Suggestion: suggestion, Err: e.Err,
		Retryable: e.Code.Retryable(),
		Reason:    e.Reason,
		Begun:     e.Begun,
	}
}

// Mark records server and code in the trail of a call, for log and audit.
func (e *Error) Mark(trail *tools.Trail) {
	if trail == nil {
		return
	}
	trail.MCPServer, trail.MCPErrorCode = e.Server, string(e.Code)
}

// AsError converts the error of a connection to an *Error. An existing *Error is kept, with server and tool filled in.
// Network errors and timeouts are transient; anything else is a server_error. For errors with a code of their own, use
// CodeOfRPC and CodeOfStatus first.
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

// CodeOfStatus returns the code for an HTTP status of 400 or more.
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

// CodeOfRPC returns the code for a JSON-RPC error (JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28).
func CodeOfRPC(code int64) Code {
	switch code {
	case -32601, -32002: // no such method; no such resource
		return NotFound
	case -32602: // invalid parameters
		return InvalidInput
	case -32001: // request timed out, as the reference implementations report it
		return Transient
	case -32042: // the person has to open a URL first, to sign in
		return AuthFailure
	case -32021: // the server needs a capability that we do not offer
		return PolicyBlocked
	default:
		return ServerError
	}
}
