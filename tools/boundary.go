package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rs/zerolog"
)

// The code of a tool is called only through these functions, so that a panic in it does not end the service. The error
// says only that the tool failed; the log has the value and the stack.

// SafeDescribe calls Describe, which must not be nil.
func (t *Tool) SafeDescribe(ctx context.Context, call *Call) (subject Subject, err error) {
	defer recovered(ctx, call, &err)
	return t.Describe(ctx, call)
}

// SafeCheck calls Check; if it is nil, the call may run.
func (t *Tool) SafeCheck(ctx context.Context, call *Call) (err error) {
	if t.Check == nil {
		return nil
	}
	defer recovered(ctx, call, &err)
	return t.Check(ctx, call)
}

// SafeDeed calls Deed; nil if it is not known.
func (t *Tool) SafeDeed(ctx context.Context, call *Call) (e *Effect, err error) {
	if t.Deed == nil {
		return nil, nil
	}
	defer recovered(ctx, call, &err)
	deed, err := t.Deed(ctx, call)
	return &deed, err
}

// SafeState calls State; nil if there is none.
func (t *Tool) SafeState(ctx context.Context, call *Call) (list []FileState, err error) {
	if t.State == nil {
		return nil, nil
	}
	defer recovered(ctx, call, &err)
	return t.State(ctx, call)
}

// SafeRun calls Run.
func (t *Tool) SafeRun(ctx context.Context, call *Call) (res *Result, err error) {
	defer recovered(ctx, call, &err)
	return t.Run(ctx, call)
}

// recovered converts a panic to an error without details for the model.
func recovered(ctx context.Context, call *Call, err *error) {
	p := recover()
	if p == nil {
		return
	}
	zerolog.Ctx(ctx).Error().Str("tool", call.Def.Name).Str("call", call.ID).
		Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("tool panicked")
	*err = &Error{
		Category: PermanentFailure, Message: "The tool failed for an internal reason.",
		Err: errors.New("tool panicked"), // the value is only logged: it may contain anything
	}
}
