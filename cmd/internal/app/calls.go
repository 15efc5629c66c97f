package app

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/undo"
)

// chain builds the one chain; approvals is nil if there is nobody to ask.
func (c *Core) chain(approvals approve.Lookup) *chain.Chain {
	return chain.New(c.chainOptions(approvals))
}

func (c *Core) chainOptions(approvals approve.Lookup) chain.Options {
	o := chain.Options{
		Registry:  c.registry,
		Audit:     c.audit,
		Approvals: approvals,
		Now:       c.now,
		Gate:      chain.GateOptions{Policy: c.policy, Request: c.book.Request, Redact: c.redactor.String},
		Judge:     c.judge,
		Redact:    chain.NewRedact(c.redactor),
	}
	if approvals != nil {
		o.Preview = c.kit.runner
	}
	if c.stores != nil { // a call from the command line has none
		o.Sure, o.Keep = c.stores.Sure, c.undo.Middleware
		if c.opts.noting != nil { // nothing is kept at the terminal
			o.Keep = c.noting(c.opts.noting)
		}
	}
	if c.tracer != nil {
		o.Trace = c.tracer.Stage
	}
	c.stages.shape(&o)
	o.Decode.Thinking = c.catalog.Thinks
	if c.stores != nil { // a resumed call may come before its server is connected
		o.Decode.Await = c.servers.Await
	}
	return o
}

// executor is the chain as called by the agent, with metrics.
type executor struct {
	chain   *chain.Chain
	audit   *audit.Log
	metrics *metrics.Metrics
	tracer  *tracing.Tracer
	undo    *undo.Store
	runner  *shell.Runner // of commands; nil = there is none
}

// Execute implements agent.Executor.
func (e executor) Execute(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	ctx, end := e.tracer.Tool(ctx, call)
	result, err := e.chain.Execute(ctx, call)
	end(result, err)
	var pending *tools.Pending
	if !call.Probe && !errors.As(err, &pending) {
		name := call.Def.Name
		if name == "" {
			name = "unknown"
		}
		e.metrics.Call(name, string(call.Trail.Category), call.Trail.Duration)
	}
	return result, err
}

// Interrupted implements agent.Executor.
func (e executor) Interrupted(ctx context.Context, call *tools.Call) {
	if e.runner != nil { // nobody works on a half-applied layer
		e.runner.CompletePreview(ctx, call)
	}
	e.audit.Interrupted(call)
	e.undo.Interrupted(ctx, call)
}

// usable lists the registered tools, as modified by a turn, without those that are denied altogether, blocked for
// a person in a conversation, or on a server that is unreachable.
func (c *Core) usable(from tools.Origin, overlay *tools.Overlay) []tools.Definition {
	if !c.cfg.Tools.Enabled {
		return nil
	}
	return catalog.Without(overlay.Over(c.registry).Definitions(), func(d tools.Definition) bool {
		return c.policy.Hides(d.Name, d.Says) || c.blocked(from, d) || c.unskilled(d) ||
			c.unplanned(d.Name) || d.Server != "" && c.servers.Away(d.Server)
	})
}

// blocked reports whether a tool is blocked for a person in a conversation because it failed too often.
func (c *Core) blocked(from tools.Origin, tool tools.Definition) bool {
	if c.stages == nil || c.stages.anomaly == nil {
		return false
	}
	_, blocked := c.stages.anomaly.Blocked(from, tool)
	return blocked
}
