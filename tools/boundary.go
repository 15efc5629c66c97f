package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rs/zerolog"
)

// The code of a tool is run through these alone: nothing that it does takes the service down. They say of a panic no
// more than that the tool failed; the log has the value and the stack.

// SafeDescribe runs Describe, which must not be nil.
func (t *Tool) SafeDescribe(ctx context.Context, call *Call) (subject Subject, err error) {
	defer recovered(ctx, call, &err)
	return t.Describe(ctx, call)
}

// SafeCheck runs Check; without one the call may run.
func (t *Tool) SafeCheck(ctx context.Context, call *Call) (err error) {
	if t.Check == nil {
		return nil
	}
	defer recovered(ctx, call, &err)
	return t.Check(ctx, call)
}

// SafeRun runs Run.
func (t *Tool) SafeRun(ctx context.Context, call *Call) (res *Result, err error) {
	defer recovered(ctx, call, &err)
	return t.Run(ctx, call)
}

// recovered turns a panic into an error that tells the model nothing of it.
func recovered(ctx context.Context, call *Call, err *error) {
	p := recover()
	if p == nil {
		return
	}
	zerolog.Ctx(ctx).Error().Str("tool", call.Def.Name).Str("call", call.ID).
		Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("tool panicked")
	*err = &Error{
		Category: PermanentFailure, Message: "The tool failed for an internal reason.",
		Err: errors.New("tool panicked"), // the value stays in the log: it may hold anything
	}
}
