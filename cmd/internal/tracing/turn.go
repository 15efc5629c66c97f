package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// Ended is a turn that is over.
type Ended struct {
	Turn     string
	Session  string
	Channel  string
	Outcome  string
	Reason   string // why it has no answer
	From, To time.Time
	Stats    journal.Stats
}

// Turn records the root of a turn.
func (t *Tracer) Turn(e Ended) {
	if t == nil {
		return
	}
	failed := ""
	if e.Reason != "" {
		failed = e.Reason
	}
	ctx := context.WithValue(context.Background(), rootKey{}, e.Turn)
	t.past(
		ctx,
		"turn",
		trace.SpanKindServer,
		e.From,
		e.To,
		failed,
		attribute.String(ourTurn, e.Turn),
		attribute.String(aiConversation, e.Session),
		attribute.String(ourChannel, e.Channel),
		attribute.String(ourOutcome, e.Outcome),
		attribute.String(ourReason, e.Reason),
		attribute.Int(ourSteps, e.Stats.Steps),
		attribute.Int(ourCalls, e.Stats.Calls),
		attribute.Float64(ourUSD, e.Stats.USD),
		attribute.Int(aiInput, e.Stats.Usage.Input),
		attribute.Int(aiOutput, e.Stats.Usage.Output),
	)
}

// Queued records how long the message of a turn has waited.
func (t *Tracer) Queued(turn string, from, to time.Time) {
	if t != nil {
		t.past(below(context.Background(), turn), "queue", trace.SpanKindInternal, from, to, "")
	}
}

// Decided records how long a question was open.
func (t *Tracer) Decided(a *bot.Approval, d bot.Decision) {
	if t == nil {
		return
	}
	t.past(below(context.Background(), a.Turn), "approval", trace.SpanKindInternal, a.Created, d.At, "",
		attribute.String(aiTool, a.Tool), attribute.String(aiToolCall, a.Call),
		attribute.String(ourDecision, string(d.State)), attribute.String(ourScope, d.Scope),
	)
}

// Run begins a run of a turn. The spans of what is done with the context are below it. end must be called.
func (t *Tracer) Run(ctx context.Context, turn *agent.Turn) (run context.Context, end func(agent.Outcome, error)) {
	if t == nil {
		return ctx, func(agent.Outcome, error) {}
	}
	ctx, span := t.tracer.Start(below(ctx, turn.ID), "invoke_agent zephbot", trace.WithAttributes(
		attribute.String(aiOperation, "invoke_agent"), attribute.String(aiAgent, "zephbot"),
		attribute.String(aiConversation, turn.Origin.Session), attribute.String(ourTurn, turn.ID),
	))
	return ctx, func(out agent.Outcome, err error) {
		defer span.End()
		if err != nil {
			fail(span, interruption(ctx, err))
			return
		}
		span.SetAttributes(
			attribute.String(ourOutcome, string(out.Kind)), attribute.String(ourReason, out.Reason),
			attribute.Int(aiInput, out.Stats.Usage.Input), attribute.Int(aiOutput, out.Stats.Usage.Output),
		)
		if out.Kind == agent.Ended {
			fail(span, out.Reason)
		}
	}
}

// interruption names why a run has no outcome.
func interruption(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, journal.ErrConflict):
		return "taken over"
	case ctx.Err() != nil:
		return "interrupted"
	default:
		return "store"
	}
}

// Phase records a phase of a run that is over now.
func (t *Tracer) Phase(ctx context.Context, phase string, took time.Duration) {
	if t == nil || !traced(ctx) {
		return
	}
	now := time.Now()
	t.past(ctx, phase, trace.SpanKindInternal, now.Add(-took), now, "")
}

// traced reports whether there is a span in ctx: nothing outside of turns is traced.
func traced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// Deliver begins an attempt to send a message; end must be called.
func (t *Tracer) Deliver(ctx context.Context, row *bot.Row) (sending context.Context, end func(error)) {
	if t == nil || row.Turn == "" {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(below(ctx, row.Turn), "deliver "+
		string(row.Purpose), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.Int64(ourRow, row.ID), attribute.String(ourPurpose, string(row.Purpose)),
		attribute.Int(ourBytes, len(row.Content.Text)), attribute.Int(ourAttempt, row.Attempts+1),
	))
	return ctx, func(err error) {
		if err != nil {
			fail(span, string(bot.OutcomeOf(err)))
		}
		span.End()
	}
}

// Request records a request to the Bot API that is over now.
func (t *Tracer) Request(ctx context.Context, method string, status int, took time.Duration) {
	if t == nil || !traced(ctx) {
		return
	}
	failed := ""
	switch {
	case status == 0:
		failed = "no answer"
	case status >= 400:
		failed = "refused"
	}
	now := time.Now()
	t.past(
		ctx, "telegram "+method, trace.SpanKindClient, now.Add(-took), now, failed, attribute.Int(httpStatus, status),
	)
}
