// Package tracing reports what happens in a turn as OpenTelemetry spans, to a collector that speaks OTLP over HTTP. It
// is the only package that knows OpenTelemetry; the layers below have hooks that app connects with it.
//
// A turn is one trace, whose id follows from the id of the turn (IDs). So whatever process works on a turn, and however
// often it is parked and resumed, its spans have the same trace and the same root, without anything being stored. The
// root is reported when the turn is over.
//
//	turn                    from the arrival of the message until its answer is stored
//	├ queue                 until the turn began
//	├ invoke_agent          each run: a turn that waits for a person has several
//	│ ├ context             what the model is sent was read and rendered
//	│ ├ chat MODEL          each attempt to call a model
//	│ ├ execute_tool NAME   each call; below it the stages of the chain, each inside the one before it
//	│ └ telegram METHOD     requests that show how the turn goes on
//	├ approval              from a question until it is decided
//	└ deliver PURPOSE       each attempt to send a message of the turn; below it the requests
//
// Spans contain ids, names, sizes, times and kinds of errors, and never what people, models or tools say, nor
// arguments, nor texts of errors.
//
// A nil *Tracer is tracing that is off: its methods do nothing and allocate nothing.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// defaultPath is where a collector takes traces (OTLP specification) if the endpoint names no path.
const defaultPath = "/v1/traces"

// Options of Open.
type Options struct {
	Endpoint string            // of the collector, such as http://127.0.0.1:4318
	Headers  map[string]string // of each request, such as a key
	Ratio    float64           // share of the turns that are traced, 0 to 1
	Version  string            // of the program
	Instance string            // identifies this process
	// Report is told what became of spans; it must not block. nil = nobody is told.
	Report func(outcome string, spans int)
	Log    zerolog.Logger
}

// What becomes of spans (Options.Report).
const (
	Exported = "exported"
	Failed   = "failed"  // the collector did not take them
	Dropped  = "dropped" // they came faster than the collector takes them
)

// Tracer makes spans. It is safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	queue    *queue
	headers  propagation.TraceContext
}

// Open returns a Tracer that exports to a collector, which need not be reachable. The caller must close it.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = defaultPath
	}
	exporter, err := otlptracehttp.New(
		ctx, otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithHeaders(o.Headers),
		otlptracehttp.WithTimeout(exportWithin), otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled:         true,
			InitialInterval: exportWithin / 20,
			MaxInterval:     exportWithin / 4,
			MaxElapsedTime:  exportWithin,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	// The library reports what it cannot return to one handler of the whole program, by default on stderr.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Debug().Err(err).Msg("tracing") }))
	q := newQueue(exporter, o.Report, o.Log)
	return newTracer(o, q), nil
}

// newTracer returns a Tracer that puts spans into a queue.
func newTracer(o Options, q *queue) *Tracer {
	provider := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(q), sdk.WithIDGenerator(generator{}),
		// By the id of the trace, so that every process decides alike about a turn.
		sdk.WithSampler(sdk.TraceIDRatioBased(o.Ratio)),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String(serviceName, "zephbot"), attribute.String(serviceVersion, o.Version),
			attribute.String(serviceInstance, o.Instance),
		)),
	)
	return &Tracer{tracer: provider.Tracer("github.com/zephbot/zephbot"), provider: provider, queue: q}
}

// Close exports what is still waiting, until ctx ends, and stops. Spans that end later are dropped.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	// The provider does not end its processors if ctx is over.
	if err := errors.Join(t.queue.Shutdown(ctx), t.provider.Shutdown(context.WithoutCancel(ctx))); err != nil {
		return fmt.Errorf("end tracing: %w", err)
	}
	return nil
}

// Inject adds the traceparent of the span in ctx (W3C Trace Context) to the header of a request; without a span,
// nothing.
func (t *Tracer) Inject(ctx context.Context, header http.Header) {
	if t != nil {
		t.headers.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Join returns a context whose spans belong to a turn, and the id of its trace. It is dispatch.Parts.Trace.
func (t *Tracer) Join(ctx context.Context, turn string) (joined context.Context, id string) {
	traceID, _ := IDs(turn)
	return below(ctx, turn), traceID.String()
}

// past records a span that is over, below the one in ctx.
func (t *Tracer) past(
	ctx context.Context,
	name string,
	kind trace.SpanKind,
	from, to time.Time,
	failed string,
	attrs ...attribute.KeyValue,
) {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithSpanKind(kind))
	if span.IsRecording() {
		span.SetAttributes(attrs...)
		fail(span, failed)
	}
	span.End(trace.WithTimestamp(to))
}
