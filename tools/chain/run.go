package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// errTimeout is the cause of a context that ended because of the tool's own limit, not the caller's.
var errTimeout = errors.New("tool timeout")

// recordStart writes the "started" records of the audit and the journal, once per call regardless of retries. A call
// that can no longer run, or cannot be recorded, is not started; nor is any by a process that is not sure of its work.
func recordStart(list *tools.Registry, log *audit.Log, sure func(context.Context) error) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			if _, err := lookupCurrent(list, call); err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, tools.AsError(err)
			}
			if err := checkUnchanged(ctx, call); err != nil {
				return nil, err
			}
			if !call.Trail.Started {
				if err := log.Started(call); err != nil {
					return nil, err
				}
			}
			if call.OnStart != nil && !call.Trail.Started {
				if err := call.OnStart(ctx); err != nil {
					return nil, notStarted(ctx, err)
				}
			}
			call.Trail.Started = true
			if sure != nil {
				if err := sure(ctx); err != nil {
					return nil, notStarted(ctx, err)
				}
			}
			return next(ctx, call)
		}
	}
}

// checkUnchanged refuses a call if a file that determines what it does was changed after the decision.
func checkUnchanged(ctx context.Context, call *tools.Call) error {
	if call.Unchanged == nil || call.Trail.Started {
		return nil
	}
	changed := call.Unchanged(ctx)
	if len(changed) == 0 {
		return nil
	}
	return tools.Refused(
		reason.New(reason.CallChanged, strings.Join(changed, ", ")),
		"Make sure that nothing else writes there, then make the call again.",
	)
}

func notStarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tools.AsError(ctx.Err())
	}
	if e, ok := errors.AsType[*tools.Error](err); ok {
		return e
	}
	return &tools.Error{
		Category: tools.ServerError, Message: "The call could not be recorded, so it was not run.",
		Err: fmt.Errorf("record start: %w", err),
	}
}

// lookupCurrent looks the tool up again. Since the decode stage, a server may have withdrawn or replaced it.
func lookupCurrent(list *tools.Registry, call *tools.Call) (tools.Tool, error) {
	t, ok := call.Tools.Over(list).Lookup(call.Def.Name)
	if !ok {
		return t, tools.Errorf(tools.PermanentFailure, "the tool %s is no longer available", call.Def.Name)
	}
	if t.Definition.Hash() != call.Def.Hash() {
		return t, tools.Errorf(tools.PermanentFailure, "the tool has changed since it was offered")
	}
	return t, nil
}

// runner is the innermost handler.
type runner struct {
	tools *tools.Registry
	now   func() time.Time
}

func (r runner) runTool(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	tool, err := lookupCurrent(r.tools, call)
	if err != nil {
		return nil, err
	}
	limit := tool.Definition.Timeout
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	call.Trail.Attempts++
	began := r.now()
	res, err := tool.SafeRun(ctx, call)
	call.Trail.Duration += max(0, r.now().Sub(began))
	if err != nil {
		return nil, timedOut(ctx, err, limit)
	}
	if res == nil { // a tool without output
		res = &tools.Result{}
	}
	if res.ExitCode != nil {
		call.Trail.ExitCode = res.ExitCode
	}
	return res, nil
}

// timedOut returns a clear error when the tool's own limit ended the run. An error made by the tool itself is kept.
func timedOut(ctx context.Context, err error, limit time.Duration) error {
	var e *tools.Error
	if errors.As(err, &e) || !errors.Is(context.Cause(ctx), errTimeout) {
		return err
	}
	return &tools.Error{
		Category: tools.Timeout, Message: fmt.Sprintf("The tool was stopped after %s.", limit),
		Err: err,
	}
}

// toolError converts any error other than a Pending or ErrProbed to a *tools.Error, and records its category.
func toolError(call *tools.Call, err error) error {
	if errors.Is(err, tools.ErrProbed) {
		return tools.ErrProbed
	}
	if pending, ok := errors.AsType[*tools.Pending](err); ok {
		call.Trail.Category = tools.ConfirmationRequired
		return pending
	}
	e := tools.AsError(err)
	call.Trail.Category = e.Category
	return e
}
