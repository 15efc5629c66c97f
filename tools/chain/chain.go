// Package chain composes the stages that every tool call walks, in the one order that there is. Built-ins, MCP tools,
// scheduled work and calls from the command line all come through here.
//
//	in ▼  audit · conclude · decode · block · gate · judge · quota · approve · probe · warn · mark · cache · overflow · filter · redact · retry · anomaly · start · registry  ▲ out
//
// Downwards, policy, quota and approval stand before cache and execution, so that a cached call has passed all three.
// Upwards, secrets are redacted in the raw output before anything keeps or shows it.
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
	"github.com/zephbot/zephbot/tools/gate"
)

// NoOutput is what a model reads of a tool that said nothing.
const NoOutput = "(no output)"

// Options are the parts of a chain. A Middleware that is nil is left out.
type Options struct {
	// Registry holds the tools; nil is an empty one.
	Registry *tools.Registry
	// Audit may be nil: nothing is recorded then.
	Audit *audit.Log
	// Decode configures the decode stage; its zero value is useful.
	Decode decode.Options
	// Gate carries the policy; without one every call is denied.
	Gate gate.Options
	// Approvals finds what people decided; nil means that there is nobody to ask, so that an ask is a denial.
	Approvals approve.Lookup

	// Block refuses tools that failed too often.
	Block tools.Middleware
	// Judge asks a model about the call (adversarial policy).
	Judge tools.Middleware
	// Quota counts calls per session.
	Quota tools.Middleware
	// Warn tells of credentials that were hidden.
	Warn tools.Middleware
	// Mark fences untrusted content.
	Mark tools.Middleware
	// Cache answers repeated reads.
	Cache tools.Middleware
	// Overflow stores what is too long for the model.
	Overflow tools.Middleware
	// Filter condenses output.
	Filter tools.Middleware
	// Redact takes secrets out of the raw output.
	Redact tools.Middleware
	// Retry repeats what failed for a passing reason. Everything below it runs once per attempt.
	Retry tools.Middleware
	// Anomaly counts how often tools fail.
	Anomaly tools.Middleware

	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Chain executes calls. It is safe for concurrent use.
type Chain struct {
	handler tools.Handler
	order   []string
}

// stage is a named place in the order.
type stage struct {
	name string
	wrap tools.Middleware
}

// New composes a chain.
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
		{"audit", auditor(o.Audit)},
		{"conclude", conclude},
		{"decode", decode.New(registry, o.Decode)},
		{"block", o.Block},
		{"gate", gate.New(registry, o.Gate)},
		{"judge", o.Judge},
		{"quota", o.Quota},
		{"approve", approve.New(o.Approvals)},
		{"probe", probe},
		{"warn", o.Warn},
		{"mark", o.Mark},
		{"cache", o.Cache},
		{"overflow", o.Overflow},
		{"filter", o.Filter},
		{"redact", o.Redact},
		{"retry", o.Retry},
		{"anomaly", o.Anomaly},
		{"start", start(registry, o.Audit)},
	}
	c := &Chain{}
	h := runner{tools: registry, now: now}.run
	for _, s := range slices.Backward(stages) {
		if s.wrap != nil {
			h = s.wrap(h)
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

func auditor(log *audit.Log) tools.Middleware {
	if log == nil {
		return nil
	}
	return log.Middleware
}

// Order names the stages that stand, the outermost first.
func (c *Chain) Order() []string { return append([]string(nil), c.order...) }

// Execute takes a call through the chain. It fills call.Trail, also where the call fails, and replaces call.Args by
// their canonical form.
//
// The error is always one of three: *tools.Error (tools.Feedback makes text for the model of it), *tools.Pending when a
// person has to decide first, or tools.ErrProbed for a Probe that may run. Judge and Quota see probes too. With a nil
// error the result is not nil and has a text.
func (c *Chain) Execute(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	if call.Trail == nil {
		call.Trail = &tools.Trail{}
	}
	return c.handler(ctx, call)
}

// probe answers a call that only asks. It is below approve: a probe ends as soon as the call may run, so no cache is
// asked and no tool is started.
func probe(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if call.Probe {
			return nil, tools.ErrProbed
		}
		return next(ctx, call)
	}
}

// conclude brings what a call ended with into the one form that Execute promises. It is below audit, so that what is
// recorded is what the caller gets.
func conclude(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		res, err := next(ctx, call)
		if err != nil {
			return nil, failure(call, err)
		}
		if res == nil {
			res = &tools.Result{}
		}
		if strings.TrimSpace(res.Text) == "" {
			shown := *res // it may be shared with a cache
			shown.Text = NoOutput
			res = &shown
		}
		call.Trail.Category = ""
		if f := res.Failure; f != nil {
			shown := *res
			shown.Text, shown.Error = tools.Feedback(f)+"\n"+res.Text, true
			call.Trail.Category, res = f.Category, &shown
		} else if res.Error && call.Def.Server != "" {
			// a foreign tool says that it failed: it ran, and nobody knows more
			call.Trail.Category = tools.ServerError
		}
		if call.Trail.ExitCode == nil {
			call.Trail.ExitCode = res.ExitCode
		}
		call.Trail.Truncated = call.Trail.Truncated || res.Truncated
		return res, nil
	}
}
