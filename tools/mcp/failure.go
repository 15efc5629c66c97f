package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp/content"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// callError returns the error of a failed call. reasons say which questions of the server were declined.
func (c *conn) callError(ctx context.Context, f *flight, err error, reasons []string) error {
	e := c.abortError(ctx, f, err)
	if e == nil {
		e = c.serverError(f, err)
	} else {
		e.Begun = true
	}
	if len(reasons) == 0 || e.Code == "" {
		return e
	}
	e.Message += " (" + strings.Join(reasons, " ") + ")"
	if e.Code == guard.ServerError || e.Code == guard.Transient {
		e.Code, e.Begun = guard.InvalidInput, true
	}
	if e.Code == guard.InvalidInput {
		e.Suggestion = "Do not repeat the call as it is: the server would ask again. Give what it asks for in the " +
			"arguments, or tell the user."
	}
	return e
}

// abortError returns the error of a call that we aborted; nil when we did not.
func (c *conn) abortError(ctx context.Context, f *flight, err error) *guard.Error {
	id := c.s.cfg.ID
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &guard.Error{Server: id, Message: "the call was cancelled", Err: context.Canceled}
	case errors.Is(err, errNagging):
		c.muteQuestions()
		return naggingError(id, err)
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded):
		return &guard.Error{
			Code: guard.Transient, Server: id,
			Message: fmt.Sprintf("the server %s did not answer within %s", id, f.limit), Err: err,
		}
	}
	return nil
}

// serverError returns the error of a call that failed at the server or in the network.
func (c *conn) serverError(f *flight, err error) *guard.Error {
	id := c.s.cfg.ID
	rpc, ok := errors.AsType[*jsonrpc.Error](err)
	switch status := int(f.status.Load()); {
	case errors.Is(err, sdk.ErrSessionMissing):
		return &guard.Error{
			Code: guard.Transient, Server: id,
			Message: "the server " + id + " has forgotten us; it is being connected again", Err: err,
		}
	case ok && rpc.Code == sdk.CodeURLElicitationRequired:
		return pageNeeded(id, rpc)
	case ok && rpc.Code == notSupported:
		text := "the server " + id + " wanted to ask the model within the call, and servers may not ask the model here"
		return &guard.Error{Code: guard.PolicyBlocked, Server: id, Message: text, Err: err, Begun: true}
	case ok && !transportCode(rpc.Code):
		return &guard.Error{
			Code: guard.CodeOfRPC(rpc.Code), Server: id, Theirs: true,
			Message: "the server " + id + " refused the call: " + guard.Line(rpc.Message, 500), Err: err,
		}
	case status >= http.StatusBadRequest:
		return statusFailure(id, status, "", err)
	case c.isOver(), errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF):
		c.requestProbe()
		return c.brokenError(err)
	case f.isNagged(): // the library gave up before we did
		return naggingError(id, err)
	default:
		return c.untypedError(err)
	}
}

// pageNeeded returns the error of a call for which the server first wants the person to open a page. The address is
// only passed on; nothing opens the page.
func pageNeeded(id string, rpc *jsonrpc.Error) *guard.Error {
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	e := &guard.Error{
		Code: guard.AuthFailure, Server: id, Err: rpc, Theirs: true,
		Message: "the server " + id + " wants the person to open a page before it does this: " +
			guard.Line(rpc.Message, 300),
		Suggestion: "Tell the user what the server wants and show the address as it is; do not open it. Call the " +
			"tool again when the user says that it is done.",
	}
	if json.Unmarshal(rpc.Data, &data) != nil {
		return e
	}
	for _, p := range data.Elicitations[:min(len(data.Elicitations), maxQuestions)] {
		if p == nil {
			continue
		}
		p.Mode = "url"
		if form := content.Elicit(p); form.Problem == "" {
			e.Message += fmt.Sprintf(" (%s %s)", form.Message, guard.Line(form.URL, 1000))
		}
	}
	return e
}

// notSupported is the library's own code for an answer that asks for something that we do not offer, such as sampling.
const notSupported = -31001

// naggingError returns the error of a call in which the server keeps asking although its questions are declined.
func naggingError(id string, err error) *guard.Error {
	return &guard.Error{
		Code:    guard.InvalidInput,
		Server:  id,
		Message: "the server " + id + " keeps asking questions within one call; the call was broken off",
		Err:     err,
		Begun:   true,
	}
}

// isNagged reports whether the server asked more often than the person was told.
func (f *flight) isNagged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked > maxQuestions
}

// transportCode reports whether the library itself made an error because a message could not be sent. It gives such
// errors codes that look like a server's.
func transportCode(code int64) bool {
	switch code {
	case -32003, -32004, -32005: // client closing, server closing, rejected by the transport
		return true
	default:
		return false
	}
}

// brokenError returns the error of a call during which the connection ended.
func (c *conn) brokenError(err error) *guard.Error {
	e := &guard.Error{
		Code: guard.Transient, Server: c.s.cfg.ID,
		Message: "the server " + c.s.cfg.ID + " went away during the call", Err: err,
	}
	if why, ok := errors.AsType[*guard.Error](c.explainError(err)); ok {
		e.Message += ": " + why.Message
		e.Theirs = true
		if why.Code == guard.InvalidInput { // the answer itself was bad
			e.Code, e.Begun = why.Code, true
		}
	}
	return e
}

// untypedError returns the error for a failure that the library has no type for.
func (c *conn) untypedError(err error) *guard.Error {
	err = c.explainError(err)
	e := guard.AsError(err, c.s.cfg.ID, "")
	if _, ok := errors.AsType[*guard.Error](err); ok {
		e.Begun = true // what was wrong with an answer
		return e
	}
	switch {
	case c.web != nil: // the answer never came, or the network failed
		if e.Code == guard.ServerError {
			e.Code, e.Message = guard.Transient, "the connection to the server "+c.s.cfg.ID+" broke during the call"
		}
		c.requestProbe()
	case e.Code == guard.ServerError:
		e.Message = "the answer of the server " + c.s.cfg.ID + " cannot be used: " + guard.Line(err.Error(), 300)
		e.Theirs = true
	}
	return e
}

// requestProbe asks run to check whether the connection still works.
func (c *conn) requestProbe() {
	if c.isOver() || c.proc != nil {
		return // for stdio, the end of the process is always noticed
	}
	select {
	case c.s.suspect <- c:
	default: // a check is already pending
	}
}
