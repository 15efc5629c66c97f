package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"
)

// IDs returns the ids of a turn's trace and of its root span. They follow from the id of the turn, so that all
// processes know them.
func IDs(turn string) (trace.TraceID, trace.SpanID) {
	sum := sha256.Sum256([]byte("zephbot turn " + turn))
	return trace.TraceID(sum[:16]), trace.SpanID(sum[16:24])
}

// below returns a context whose spans are below the root of a turn, which need not exist yet.
func below(ctx context.Context, turn string) context.Context {
	id, root := IDs(turn)
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: root, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}

// rootKey holds the turn whose root is being made.
type rootKey struct{}

// generator makes ids: those of a turn's root, or random ones.
type generator struct{}

// NewIDs implements sdk.IDGenerator.
func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if turn, ok := ctx.Value(rootKey{}).(string); ok {
		return IDs(turn)
	}
	var id trace.TraceID
	fill(id[:])
	return id, span()
}

// NewSpanID implements sdk.IDGenerator.
func (generator) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return span() }

func span() (id trace.SpanID) {
	fill(id[:])
	return id
}

// fill makes a random id; ids of zero are not valid.
func fill(id []byte) {
	_, _ = rand.Read(id) // never fails
	id[len(id)-1] |= 1
}
