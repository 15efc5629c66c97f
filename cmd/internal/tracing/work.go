package tracing

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/tools"
)

// Model is a model as it is configured.
type Model struct {
	Vendor string // by the semantic conventions: openai, anthropic …
	Name   string // as it is asked for
}

// Asked records an attempt to call a model that is over now.
func (t *Tracer) Asked(ctx context.Context, model Model, a route.Attempt) {
	if t == nil || !traced(ctx) {
		return
	}
	failed := ""
	if a.Err != nil {
		failed = string(llm.KindOf(a.Err))
	}
	now := time.Now()
	t.past(
		ctx,
		"chat "+model.Name,
		trace.SpanKindClient,
		now.Add(-a.Duration),
		now,
		failed,
		attribute.String(aiOperation, "chat"),
		attribute.String(aiProvider, model.Vendor),
		attribute.String(aiRequestModel, model.Name),
		attribute.String(aiResponseModel, a.Model),
		attribute.Int(aiInput, a.Usage.Input),
		attribute.Int(aiCached, a.Usage.CachedInput),
		attribute.Int(aiOutput, a.Usage.Output),
		attribute.String(ourProvider, a.Provider),
		attribute.Int(ourAttempt, a.Number),
		attribute.Float64(ourUSD, a.USD),
	)
}

// unknownTool stands for names that a model has made up: they are text of the model.
const unknownTool = "unknown"

// Tool begins a call of a tool; end must be called. Probes are not traced.
func (t *Tracer) Tool(ctx context.Context, call *tools.Call) (calling context.Context, end func(*tools.Result, error)) {
	if t == nil || call.Probe || !traced(ctx) {
		return ctx, func(*tools.Result, error) {}
	}
	ctx, span := t.tracer.Start(ctx, "execute_tool", trace.WithAttributes(
		attribute.String(aiOperation, "execute_tool"), attribute.String(aiToolType, "function"),
		attribute.String(aiToolCall, call.ID), attribute.String(ourAgent, call.Origin.Agent),
	))
	return ctx, func(res *tools.Result, err error) {
		defer span.End()
		if !span.IsRecording() {
			return
		}
		name := cmp.Or(call.Def.Name, unknownTool) // known once the call was decoded
		span.SetName("execute_tool " + name)
		attrs := []attribute.KeyValue{attribute.String(aiTool, name), attribute.String(ourServer, call.Def.Server)}
		if trail := call.Trail; trail != nil {
			attrs = append(
				attrs, attribute.String(ourEffect, string(trail.Effect)), attribute.Bool(ourCached, trail.Cached),
			)
			if err == nil {
				fail(span, string(trail.Category))
			}
		}
		if res != nil {
			attrs = append(attrs, attribute.Int(ourBytes, len(res.Text)))
		}
		span.SetAttributes(attrs...)
		fail(span, problem(err))
	}
}

// problem names the error of a call or stage; "" = it is none.
func problem(err error) string {
	var pending *tools.Pending
	switch {
	case err == nil, errors.As(err, &pending), errors.Is(err, tools.ErrProbed):
		return ""
	default:
		return string(tools.AsError(err).Category)
	}
}

// Stage begins a stage of the chain; end must be called with the stage's error. It is chain.Options.Trace.
func (t *Tracer) Stage(ctx context.Context, stage string, call *tools.Call) (inside context.Context, end func(error)) {
	if t == nil || call.Probe || !traced(ctx) {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, stage, trace.WithAttributes(attribute.String(ourStage, stage)))
	return ctx, func(err error) {
		fail(span, problem(err))
		span.End()
	}
}
