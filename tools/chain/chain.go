// Package chain composes the stages that every tool call passes through, in one fixed order. Built-in tools, MCP tools,
// scheduled work and calls from the command line all use it.
//
//	in ▼  audit · conclude · decode · block · gate · judge · quota · approve · probe · warn ·
//	      mark · cache · overflow · filter · redact · retry · anomaly · start · keep · registry  ▲ out
//
// On the way in, policy, quota and approval come before cache and execution, so a cached call has passed all three. On
// the way out, secrets are redacted from the raw output before anything stores or shows it.
//
// The stages that are one file are here too: gate, quota, utility, mark, redact and retry.
package chain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/decode"
)

// noOutput is the text that a model reads when a tool returned none.
const noOutput = "(no output)"

// Options are the parts of a chain. A Middleware that is nil is left out.
type Options struct {
	// Registry holds the tools; nil is an empty one.
	Registry *tools.Registry
	// Audit may be nil; nothing is recorded then.
	Audit *audit.Log
	// Decode configures the decode stage. Its zero value is usable.
	Decode decode.Options
	// Gate holds the policy; without one, every call is denied.
	Gate GateOptions
	// Approvals finds the decisions of people; nil means that there is nobody to ask, so that an ask becomes a denial.
	Approvals approve.Lookup
	// Preview runs calls without effect before people are asked about them; nil = nothing does.
	Preview approve.Previewer

	// Block refuses tools that have failed too often.
	Block tools.Middleware
	// Judge asks a model about the call (adversarial policy).
	Judge tools.Middleware
	// Quota counts calls per session.
	Quota tools.Middleware
	// Warn reports credentials that were hidden.
	Warn tools.Middleware
	// Mark marks untrusted content.
	Mark tools.Middleware
	// Cache answers repeated reads.
	Cache tools.Middleware
	// Overflow stores output that is too long for the model.
	Overflow tools.Middleware
	// Filter shortens output.
	Filter tools.Middleware
	// Redact removes secrets from the raw output.
	Redact tools.Middleware
	// Retry repeats calls that failed for a temporary reason. Every stage below it runs once per attempt.
	Retry tools.Middleware
	// Anomaly counts the failures of tools.
	Anomaly tools.Middleware

	// Keep keeps the files that a call changes, so that they can be put back.
	Keep tools.Middleware

	// Sure waits until this process can be sure that its work is still its own, after a call was recorded as started
	// and before each of its runs; an error when it is not any more. nil = it always is.
	Sure func(ctx context.Context) error

	// Trace is told when a call enters a stage and, by end, when it leaves it, with the stage's error; nil = nobody is.
	// The stage gets the context that Trace returns.
	Trace func(ctx context.Context, stage string, call *tools.Call) (inside context.Context, end func(error))

	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Chain executes calls. It is safe for concurrent use.
type Chain struct {
	handler tools.Handler
	order   []string
}

// stage is a named stage.
type stage struct {
	name string
	wrap tools.Middleware
}

// New returns a chain of the given parts.
func New(o Options) *Chain {
	registry := o.Registry
	if registry == nil {
		registry = &tools.Registry{}
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	stages := []stage{
		{"audit", auditStage(o.Audit)},
		{"conclude", concludeCall},
		{"decode", decode.New(registry, o.Decode)},
		{"block", o.Block},
		{"gate", NewGate(registry, o.Gate)},
		{"judge", o.Judge},
		{"quota", o.Quota},
		{"approve", approve.New(o.Approvals, o.Preview)},
		{"probe", endProbe},
		{"warn", o.Warn},
		{"mark", o.Mark},
		{"cache", o.Cache},
		{"overflow", o.Overflow},
		{"filter", o.Filter},
		{"redact", o.Redact},
		{"retry", o.Retry},
		{"anomaly", o.Anomaly},
		{"start", recordStart(registry, o.Audit, o.Sure)},
		{"keep", o.Keep},
	}
	c := &Chain{}
	h := traceStage(o.Trace, "registry", runner{tools: registry, now: now}.runTool)
	for _, s := range slices.Backward(stages) {
		if s.wrap != nil {
			h = traceStage(o.Trace, s.name, s.wrap(h))
		}
	}
	for _, s := range stages {
		if s.wrap != nil {
			c.order = append(c.order, s.name)
		}
	}
	c.order = append(c.order, "registry")
	c.handler = h
	return c
}

// traceStage reports to trace, unless it is nil, what passes a stage.
func traceStage(
	trace func(context.Context, string, *tools.Call) (context.Context, func(error)), stage string, h tools.Handler,
) tools.Handler {
	if trace == nil {
		return h
	}
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		ctx, end := trace(ctx, stage, call)
		var err error
		defer func() { end(err) }()
		var res *tools.Result
		res, err = h(ctx, call)
		return res, err
	}
}

func auditStage(log *audit.Log) tools.Middleware {
	if log == nil {
		return nil
	}
	return log.Middleware
}

// Order returns the names of the active stages, outermost first.
func (c *Chain) Order() []string { return append([]string(nil), c.order...) }

// Execute runs a call through the chain. It fills call.Trail even if the call fails, and replaces call.Args by their
// canonical form.
//
// The error is always one of three: a *tools.Error, which tools.Feedback turns into text for the model; a
// *tools.Pending, when a person has to decide first; or tools.ErrProbed, for a Probe that may run. Judge and Quota see
// probes too. When the error is nil, the result is not nil and has a text.
func (c *Chain) Execute(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	if call.Trail == nil {
		call.Trail = &tools.Trail{}
	}
	return c.handler(ctx, call)
}

// endProbe ends a call that is only a probe. It comes after approve: a probe is over as soon as the call may run,
// without using the cache or starting a tool.
func endProbe(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if call.Probe {
			return nil, tools.ErrProbed
		}
		return next(ctx, call)
	}
}

// concludeCall converts every outcome to the form that Execute promises. It is inside audit, so that the
// audit records what the caller gets.
func concludeCall(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		res, err := next(ctx, call)
		if err != nil {
			return nil, toolError(call, err)
		}
		if res == nil {
			res = &tools.Result{}
		}
		if strings.TrimSpace(res.Text) == "" {
			shown := *res // a cache may share it
			shown.Text = noOutput
			res = &shown
		}
		call.Trail.Category = ""
		if f := res.Failure; f != nil {
			shown := *res
			shown.Text, shown.Error = tools.Feedback(f)+"\n"+res.Text, true
			call.Trail.Category, res = f.Category, &shown
		} else if res.Error && call.Def.Server != "" {
			// a foreign tool reports its own failure: it ran, and nothing more is known
			call.Trail.Category = tools.ServerError
		}
		if call.Trail.ExitCode == nil {
			call.Trail.ExitCode = res.ExitCode
		}
		call.Trail.Truncated = call.Trail.Truncated || res.Truncated
		return res, nil
	}
}
