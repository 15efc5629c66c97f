package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
)

// openTracing connects the hooks of the layers with a collector; without an endpoint, nothing is traced.
func (c *Core) openTracing(ctx context.Context) (err error) {
	t := c.cfg.Tracing
	if t.Endpoint == "" || c.passing {
		return nil
	}
	headers := map[string]string{}
	for name, value := range t.Headers {
		headers[name] = value.Reveal()
	}
	c.tracer, err = tracing.Open(ctx, tracing.Options{
		Endpoint: t.Endpoint, Headers: headers, Ratio: t.SampleRatio, Version: c.opts.Version, Instance: c.owner,
		Report: c.metrics.Spans, Log: c.log.With().Str("component", "tracing").Logger(),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return nil
}

// closeTracing exports what is still waiting, for at most as long as the audit log may take, which is written at the
// same time.
func (c *Core) closeTracing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, graceAudit)
	defer cancel()
	return c.tracer.Close(ctx)
}

// turnTrace is dispatch.Parts.Trace.
func (c *Core) turnTrace() func(context.Context, string) (context.Context, string) {
	if c.tracer == nil {
		return nil
	}
	return c.tracer.Join
}

// tracedRunner traces the runs of turns.
func (c *Core) tracedRunner(r dispatch.Runner) dispatch.Runner {
	if c.tracer == nil {
		return r
	}
	return runnerOf{r, c.tracer}
}

type runnerOf struct {
	dispatch.Runner
	tracer *tracing.Tracer
}

// Run implements dispatch.Runner.
func (r runnerOf) Run(ctx context.Context, turn *agent.Turn, of agent.Journal, sink agent.Sink) (agent.Outcome, error) {
	ctx, end := r.tracer.Run(ctx, turn)
	out, err := r.Runner.Run(ctx, turn, of, sink)
	end(out, err)
	return out, err
}

// tracedSender traces the delivery of messages.
func (c *Core) tracedSender(s bot.Sender) bot.Sender {
	if c.tracer == nil {
		return s
	}
	return senderOf{s, c.tracer}
}

type senderOf struct {
	bot.Sender
	tracer *tracing.Tracer
}

// Send implements bot.Sender.
func (s senderOf) Send(ctx context.Context, row *bot.Row) (string, error) {
	ctx, end := s.tracer.Deliver(ctx, row)
	message, err := s.Sender.Send(ctx, row)
	end(err)
	return message, err
}

// observeRequest counts and traces a request to the Bot API.
func (c *Core) observeRequest(ctx context.Context, method string, status int, took time.Duration) {
	c.metrics.Request(method, status)
	c.tracer.Request(ctx, method, status, took)
}

// tracedModel describes the model of a provider.
func (c *Core) tracedModel(provider string) tracing.Model {
	for i := range c.cfg.LLM.Providers {
		if p := &c.cfg.LLM.Providers[i]; p.Name == provider {
			return tracing.Model{Vendor: p.Type, Name: cmp.Or(p.Model, p.Type)}
		}
	}
	return tracing.Model{Vendor: provider, Name: provider}
}
