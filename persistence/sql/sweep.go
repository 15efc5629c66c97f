package sql

import (
	"context"
	"fmt"
	"time"
)

// How long things are kept.
const (
	rawKept     = 8 * 24 * time.Hour  // body of a finished arrival
	arrivalKept = 16 * 24 * time.Hour // its dedupe key
	contentKept = 30 * 24 * time.Hour // content of a row that was delivered or given up
	sweepBatch  = 500                 // rows of one transaction, so that Changes come in between
	largeBatch  = 20                  // rows of one transaction where each may have megabytes
)

// Swept says what a Sweep removed.
type Swept struct {
	Bodies   int64 // of arrivals
	Arrivals int64
	Contents int64 // of outbox rows
	Facts    int64
	Outputs  int64 // of tools
}

// Each query takes a time and the size of a batch.
const (
	sweepBodies = `UPDATE inbox SET raw = NULL WHERE seq IN
(SELECT seq FROM inbox WHERE finished > 0 AND raw IS NOT NULL AND finished <= ? LIMIT ?)`
	sweepArrivals = `DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE finished > 0 AND finished <= ? LIMIT ?)`
	sweepContents = `UPDATE outbox SET content = NULL WHERE id IN
(SELECT id FROM outbox WHERE finished > 0 AND content IS NOT NULL AND finished <= ? LIMIT ?)`
	sweepFacts    = `DELETE FROM fact WHERE (bucket, key) IN (SELECT bucket, key FROM fact WHERE expires > 0 AND expires <= ? LIMIT ?)`
	sweepOverflow = `DELETE FROM tool_overflow WHERE id IN (SELECT id FROM tool_overflow WHERE expires > 0 AND expires <= ? LIMIT ?)`
)

// Sweep forgets what is no longer needed at now: bodies of arrivals finished more than 8 days ago and, after 16 days, that they came; contents
// of rows finished more than 30 days ago (the row and its key stay); expired facts and outputs. It works in small batches and stops with ctx.
func (s *Store) Sweep(ctx context.Context, now time.Time) (Swept, error) {
	var swept Swept
	for _, task := range []struct {
		what  string
		count *int64
		query string
		until time.Time
		batch int64
	}{
		{"bodies of arrivals", &swept.Bodies, sweepBodies, now.Add(-rawKept), sweepBatch},
		{"arrivals", &swept.Arrivals, sweepArrivals, now.Add(-arrivalKept), sweepBatch},
		{"contents of rows", &swept.Contents, sweepContents, now.Add(-contentKept), sweepBatch},
		{"facts", &swept.Facts, sweepFacts, now, sweepBatch},
		{"outputs", &swept.Outputs, sweepOverflow, now, largeBatch},
	} {
		if err := s.sweep(ctx, task.count, task.query, task.until, task.batch); err != nil {
			return swept, fmt.Errorf("sweep %s: %w", task.what, err)
		}
	}
	return swept, nil
}

// sweep repeats a query until it finds less than a batch.
func (s *Store) sweep(ctx context.Context, count *int64, query string, until time.Time, batch int64) error {
	for {
		var n int64
		err := s.maintain(ctx, func(ctx context.Context, q *queries) (err error) {
			n, err = q.changed(ctx, query, nanos(until), batch)
			return err
		})
		if err != nil {
			return err
		}
		*count += n
		if n < batch {
			return nil
		}
	}
}
