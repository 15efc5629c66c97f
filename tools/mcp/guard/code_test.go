package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code      guard.Code
		word      string
		retryable bool
		category  tools.Category
	}{
		{guard.Transient, "transient", true, tools.NetworkError},
		{guard.RateLimited, "rate_limited", true, tools.RateLimited},
		{guard.ServerError, "server_error", true, tools.ServerError},
		{guard.InvalidInput, "invalid_input", false, tools.InvalidParameters},
		{guard.AuthFailure, "auth_failure", false, tools.PermanentFailure},
		{guard.NotFound, "not_found", false, tools.ToolNotFound},
		{guard.PolicyBlocked, "policy_blocked", false, tools.PolicyBlocked},
	} {
		if string(c.code) != c.word || c.code.Retryable() != c.retryable || c.code.Category() != c.category {
			t.Errorf("%s: %v %v", c.code, c.code.Retryable(), c.code.Category())
		}
		if c.retryable != c.code.Category().Transient() {
			t.Errorf("%s: the two taxonomies disagree", c.code)
		}
		e := &guard.Error{Code: c.code, Server: "s", Tool: "t", Message: "m"}
		te := e.ToolError()
		if te.Category != c.category || te.Retryable != c.retryable || te.Message != "m" || te.Denied() {
			t.Errorf("%s: %+v", c.code, te)
		}
		var trail tools.Trail
		e.Mark(&trail)
		if trail.MCPServer != "s" || trail.MCPErrorCode != c.word {
			t.Errorf("%s: %+v", c.code, trail)
		}
		e.Mark(nil)
	}
}

func TestErrorsAreToolErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("boom")
	err := fmt.Errorf("call: %w", &guard.Error{Code: guard.AuthFailure, Server: "s", Tool: "t", Message: "not signed in", Err: cause})
	te := tools.AsError(err)
	if te.Category != tools.PermanentFailure || te.Message != "not signed in" || !strings.Contains(te.Suggestion, "admin") || !errors.Is(err, cause) {
		t.Errorf("%+v", te)
	}
	if got := err.Error(); got != "call: s:t: auth_failure: not signed in: boom" {
		t.Errorf("%q", got)
	}
	if got := (&guard.Error{Code: guard.Transient, Server: "s", Message: "m"}).Error(); got != "s: transient: m" {
		t.Errorf("%q", got)
	}
	if got := (&guard.Error{Message: "m"}).Error(); got != "m" {
		t.Errorf("%q", got)
	}
	if feedback := tools.Feedback(err); !strings.Contains(feedback, "category: permanent_failure") || strings.Contains(feedback, "boom") {
		t.Error(feedback)
	}
	own := &guard.Error{Code: guard.InvalidInput, Message: "m", Suggestion: "do this"}
	if own.ToolError().Suggestion != "do this" {
		t.Error("the suggestion was lost")
	}
}

func TestAsError(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name     string
		err      error
		code     guard.Code
		category tools.Category
		retry    bool
	}{
		{"time", fmt.Errorf("call: %w", context.DeadlineExceeded), guard.Transient, tools.Timeout, true},
		{"refused", refused, guard.Transient, tools.NetworkError, true},
		{"broken pipe", syscall.EPIPE, guard.Transient, tools.NetworkError, true},
		{"cancelled", fmt.Errorf("x: %w", context.Canceled), "", tools.Cancelled, false},
		{"unknown", errors.New("secret detail"), guard.ServerError, tools.ServerError, true},
		{"own", fmt.Errorf("x: %w", &guard.Error{Code: guard.NotFound, Message: "gone"}), guard.NotFound, tools.ToolNotFound, false},
	} {
		e := guard.AsError(c.err, "s", "t")
		if e.Code != c.code || e.Category() != c.category || e.ToolError().Retryable != c.retry || e.Server != "s" || e.Tool != "t" {
			t.Errorf("%s: %+v, category %s", c.name, e, e.Category())
		}
		if strings.Contains(e.Message, "secret") {
			t.Errorf("%s: the message gives away internals: %s", c.name, e.Message)
		}
	}
	own := &guard.Error{Code: guard.NotFound, Server: "other", Tool: "u"}
	if e := guard.AsError(own, "s", "t"); e.Server != "other" || e.Tool != "u" || e == own {
		t.Errorf("%+v", e)
	}
}

func TestForeignCodes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]guard.Code{
		400: guard.InvalidInput, 401: guard.AuthFailure, 403: guard.AuthFailure, 404: guard.NotFound, 407: guard.AuthFailure, 408: guard.Transient, 410: guard.NotFound,
		422: guard.InvalidInput, 429: guard.RateLimited, 500: guard.ServerError, 501: guard.ServerError, 502: guard.Transient, 503: guard.Transient, 504: guard.Transient,
	} {
		if got := guard.CodeOfStatus(status); got != want {
			t.Errorf("%d: %s", status, got)
		}
	}
	for code, want := range map[int64]guard.Code{
		-32601: guard.NotFound, -32602: guard.InvalidInput, -32603: guard.ServerError, -32700: guard.ServerError, -32002: guard.NotFound,
		-32001: guard.Transient, -32042: guard.AuthFailure, -32021: guard.PolicyBlocked, -32022: guard.ServerError, 7: guard.ServerError,
	} {
		if got := guard.CodeOfRPC(code); got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
}
