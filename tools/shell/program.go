package shell

import (
	"context"

	"github.com/zephbot/zephbot/tools"
)

// programStream is how many bytes of each stream Output keeps: the first and the last half of a longer one.
const programStream = 4 << 20

// Output is what a command of another tool has printed.
type Output struct {
	Stdout, Stderr string        // at most 4 MiB each
	Result         *tools.Result // as the tool for commands would return it
}

// Subject describes a command that another tool runs, as if it were run by the tool for commands.
func (r *Runner) Subject(ctx context.Context, call *tools.Call, text string) (tools.Subject, error) {
	return r.describeCall(ctx, call, In{Command: text})
}

// May returns why a command of another tool cannot run here even if it is approved.
func (r *Runner) May(ctx context.Context, call *tools.Call, text string) error {
	return r.checkPossible(ctx, call, In{Command: text})
}

// Changes returns what a command of another tool may change.
func (r *Runner) Changes(ctx context.Context, call *tools.Call, text string) (tools.Changes, error) {
	return r.changesOf(ctx, call, In{Command: text})
}

// Output runs a command of another tool, with the sandbox, the limits and the environment of every command, and waits
// for its end.
func (r *Runner) Output(ctx context.Context, call *tools.Call, text string) (*Output, error) {
	if err := r.May(ctx, call, text); err != nil {
		return nil, err
	}
	ws, err := r.workspaceOf(call.Origin)
	if err != nil {
		return nil, err
	}
	o, err := r.executeJob(ctx, job{
		text:     text,
		ws:       ws,
		timeout:  r.opts.Timeout,
		progress: call.Progress,
		permit:   permitOf(call),
		read:     r.readableDirs(call.Origin),
		stream:   programStream,
	})
	if err != nil {
		return nil, startFailure(err)
	}
	if why := o.tooLittle(ws); isReading(call) && why.Code != "" {
		return nil, &tools.Walled{Reason: why}
	}
	return &Output{Stdout: o.stdout, Stderr: o.stderr, Result: r.concludeRun(call, o, nil, nil)}, nil
}

// Dir returns the working directory of a conversation, which is created if it does not exist.
func (r *Runner) Dir(o tools.Origin) (string, error) { return r.workspaceOf(o) }
