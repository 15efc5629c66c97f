package decode

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
)

// Memory keeps the outcome of the one attempt to correct a call's arguments. Safe for concurrent use.
type Memory interface {
	// Mended is what Remember was told of the call; "" = nothing yet.
	Recall(ctx context.Context, session, call string) (string, error)
	Remember(ctx context.Context, session, call, args string) error
}

// inVain is remembered of an attempt that gave nothing. It is no JSON object.
const inVain = "-"

// reformat makes the one attempt, or takes up what came of it before. When it gives nothing, the original problem
// stays.
func (d *decoder) reformat(ctx context.Context, call *tools.Call, written json.RawMessage, problem *tools.Error) error {
	if d.options.Reformat == nil || call.Tools.Takes(call.Def.Name) || d.hides(call.Def) {
		return problem // nobody is asked for what would be denied
	}
	session, id := call.Origin.Session, call.ID
	if id != "" { // a call without a name cannot be told from others
		known, err := d.options.Memory.Recall(ctx, session, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return tools.AsError(ctx.Err())
		case err != nil: // a person may have approved the corrected call: it must not end as something else
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

// attempt asks once, and keeps what came of it before it is used.
func (d *decoder) attempt(ctx context.Context, call *tools.Call, written json.RawMessage, problem *tools.Error) error {
	args, err := d.options.Reformat(ctx, call.Def, call, written, problem)
	if ctx.Err() != nil {
		return tools.AsError(ctx.Err()) // not an attempt: the call will be looked at again
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
			call.Args, keep = before, inVain // what nobody remembers cannot be approved and resumed
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

// maxRecent bounds what a process remembers without a Memory of its own.
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
