package decode

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
)

// Memory stores the result of the only attempt to correct a call's arguments. It is safe for concurrent use.
type Memory interface {
	// Recall returns what Remember stored for the call; "" = nothing yet.
	Recall(ctx context.Context, session, call string) (string, error)
	Remember(ctx context.Context, session, call, args string) error
}

// inVain is stored for an attempt without a usable result. It is not a JSON object.
const inVain = "-"

// reformat makes the only attempt, or uses the stored result. Without a usable result, it returns the original problem.
func (d *decoder) reformat(ctx context.Context, call *tools.Call, written json.RawMessage, problem *tools.Error) error {
	if d.options.Reformat == nil || call.Tools.Takes(call.Def.Name) || d.hides(call.Def) {
		return problem // do not ask for something that would be denied
	}
	session, id := call.Origin.Session, call.ID
	if id != "" { // a call without an id cannot be identified
		known, err := d.options.Memory.Recall(ctx, session, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return tools.AsError(ctx.Err())
		case err != nil: // a person may have approved the corrected call: it must not end differently
			return &tools.Error{
				Category: tools.ServerError,
				Message:  "The corrected arguments of this call could not be read, so it was not run.",
				Err:      fmt.Errorf("read corrected arguments: %w", err),
			}
		case known == inVain:
			return problem
		case known != "":
			return d.corrected(ctx, call, json.RawMessage(known), problem)
		}
	}
	return d.attempt(ctx, call, written, problem)
}

// attempt asks once, and stores the result before it is used.
func (d *decoder) attempt(ctx context.Context, call *tools.Call, written json.RawMessage, problem *tools.Error) error {
	args, err := d.options.Reformat(ctx, call.Def, call, written, problem)
	if ctx.Err() != nil {
		return tools.AsError(ctx.Err()) // this was not an attempt: the call will be decoded again
	}
	if err != nil {
		zerolog.Ctx(ctx).Info().Err(err).Str("tool", call.Def.Name).Msg("arguments not corrected")
	}
	before, keep := call.Args, inVain
	if err == nil && d.try(ctx, call, args) {
		keep = string(call.Args)
	}
	if call.ID != "" {
		if err := d.options.Memory.Remember(ctx, call.Origin.Session, call.ID, keep); err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Str("tool", call.Def.Name).Msg("corrected arguments not stored")
			call.Args, keep = before, inVain // what is not stored cannot be approved and resumed
		}
	}
	if keep == inVain {
		return problem
	}
	return nil
}

func (d *decoder) corrected(ctx context.Context, call *tools.Call, args json.RawMessage, problem *tools.Error) error {
	if d.try(ctx, call, args) {
		return nil
	}
	return problem
}

// maxRecent limits what a process remembers without a Memory.
const maxRecent = 1024

// recent is the Memory of one process.
type recent struct {
	mu    sync.Mutex
	calls map[[2]string]string
}

// Mended implements Memory.
func (r *recent) Recall(_ context.Context, session, call string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[[2]string{session, call}], nil
}

// Remember implements Memory.
func (r *recent) Remember(_ context.Context, session, call, args string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil || len(r.calls) >= maxRecent {
		r.calls = map[[2]string]string{}
	}
	r.calls[[2]string{session, call}] = args
	return nil
}
