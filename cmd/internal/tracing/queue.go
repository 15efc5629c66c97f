package tracing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	mostWaiting  = 4096             // spans; about 1 kB each
	mostAtOnce   = 512              // spans in one request
	exportEvery  = 2 * time.Second  // how long a span waits for others
	exportWithin = 10 * time.Second // limits a request with its repetitions
	sayEvery     = time.Minute      // how often failures are logged
)

// queue exports spans in the background. It is used instead of the library's own, which does not tell how many spans it
// has dropped. Nothing ever waits for it.
type queue struct {
	exporter sdk.SpanExporter
	report   func(outcome string, spans int)
	log      zerolog.Logger
	spans    chan sdk.ReadOnlySpan
	ending   chan struct{} // closed: no further spans are taken
	once     sync.Once
	end      context.CancelFunc // of requests
	worker   sync.WaitGroup
	said     time.Time // when a failure was last logged; of the worker
}

func newQueue(exporter sdk.SpanExporter, report func(string, int), log zerolog.Logger) *queue {
	if report == nil {
		report = func(string, int) {}
	}
	q := &queue{
		exporter: exporter, report: report, log: log,
		spans: make(chan sdk.ReadOnlySpan, mostWaiting), ending: make(chan struct{}),
	}
	life, end := context.WithCancel(context.Background())
	q.end = end
	q.worker.Go(func() { q.run(life) })
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	select {
	case <-q.ending:
		q.report(Dropped, 1)
		return
	default:
	}
	select {
	case q.spans <- s:
	default:
		q.report(Dropped, 1)
	}
}

// ForceFlush implements sdk.SpanProcessor. Nothing calls it.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdk.SpanProcessor: it exports what is waiting, until ctx ends. Further calls do nothing.
func (q *queue) Shutdown(ctx context.Context) error {
	var err error
	q.once.Do(func() {
		close(q.ending)
		stop := context.AfterFunc(ctx, q.end)
		defer stop()
		q.worker.Wait()
		q.end()
		err = errors.Join(ctx.Err(), q.exporter.Shutdown(context.WithoutCancel(ctx)))
	})
	return err
}

// run exports spans until Shutdown.
func (q *queue) run(life context.Context) {
	batch := make([]sdk.ReadOnlySpan, 0, mostAtOnce)
	timer := time.NewTimer(exportEvery)
	defer timer.Stop()
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < mostAtOnce {
				continue
			}
		case <-timer.C:
		case <-q.ending:
			q.drain(life, batch)
			return
		}
		q.export(life, batch)
		batch = batch[:0]
		timer.Reset(exportEvery)
	}
}

// drain exports what is left.
func (q *queue) drain(life context.Context, batch []sdk.ReadOnlySpan) {
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == mostAtOnce {
				q.export(life, batch)
				batch = batch[:0]
			}
		default:
			q.export(life, batch)
			return
		}
	}
}

func (q *queue) export(life context.Context, batch []sdk.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(life, exportWithin)
	defer cancel()
	if err := q.exporter.ExportSpans(ctx, batch); err != nil {
		q.report(Failed, len(batch))
		if now := time.Now(); now.Sub(q.said) >= sayEvery {
			q.said = now
			q.log.Warn().Err(err).Int("spans", len(batch)).Msg("spans not exported; see tracing.endpoint")
		}
		return
	}
	q.report(Exported, len(batch))
}
