package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// How long things are kept.
const (
	rawKept     = 8 * 24 * time.Hour  // body of a finished arrival
	arrivalKept = 16 * 24 * time.Hour // its dedupe key
	contentKept = 30 * 24 * time.Hour // content of a row that was delivered or given up
	chargeKept  = 3 * 24 * time.Hour  // key of a charge; a turn that is begun again is begun within minutes
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
	Charges  int64 // added to the sums of their days
}

// The old queries take a time and the size of a batch and give the keys of rows, the others take one such key. They are two, for a planner that finds
// the keys by a subquery may prefer to walk over the table.
const (
	oldBodies     = `SELECT seq FROM inbox WHERE finished > 0 AND raw IS NOT NULL AND finished <= ? ORDER BY finished LIMIT CAST(? AS INTEGER)`
	forgetBody    = `UPDATE inbox SET raw = NULL WHERE seq = ?`
	oldArrivals   = `SELECT seq FROM inbox WHERE finished > 0 AND raw IS NULL AND finished <= ? ORDER BY finished LIMIT CAST(? AS INTEGER)`
	deleteArrival = `DELETE FROM inbox WHERE seq = ?`
	oldContents   = `SELECT id FROM outbox WHERE finished > 0 AND content IS NOT NULL AND finished <= ? ORDER BY finished LIMIT CAST(? AS INTEGER)`
	forgetContent = `UPDATE outbox SET content = NULL WHERE id = ?`
	oldFacts      = `SELECT bucket, key FROM fact WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT CAST(? AS INTEGER)`
	oldOutputs    = `SELECT id FROM tool_overflow WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT CAST(? AS INTEGER)`
	deleteOutput  = `DELETE FROM tool_overflow WHERE id = ?`

	oldCharges   = `SELECT key, scope, unit, day, n FROM charge WHERE day < ? ORDER BY day LIMIT CAST(? AS INTEGER)`
	deleteCharge = `DELETE FROM charge WHERE key = ?`
	addUsage     = `INSERT INTO usage (day, scope, unit, n) VALUES (?, ?, ?, ?)
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
)

// Sweep forgets what is no longer needed at now: bodies of arrivals finished more than 8 days ago and, after 16 days, that they came; contents
// of rows finished more than 30 days ago (the row and its key stay); expired facts and outputs; the keys of charges of more than 3 days ago, which
// become one sum a day, scope and unit. It works in small batches, between which Changes are made, and stops with ctx.
func (s *Store) Sweep(ctx context.Context, now time.Time) (Swept, error) {
	var swept Swept
	for _, task := range []struct {
		what  string
		count *int64
		batch int
		run   func(context.Context, *queries, int) (int, error)
	}{
		{"bodies of arrivals", &swept.Bodies, sweepBatch, sweeper(1, oldBodies, forgetBody, nanos(now.Add(-rawKept)))},
		{"arrivals", &swept.Arrivals, sweepBatch, sweeper(1, oldArrivals, deleteArrival, nanos(now.Add(-arrivalKept)))},
		{"contents of rows", &swept.Contents, sweepBatch, sweeper(1, oldContents, forgetContent, nanos(now.Add(-contentKept)))},
		{"facts", &swept.Facts, sweepBatch, sweeper(2, oldFacts, deleteFact, nanos(now))},
		{"outputs", &swept.Outputs, largeBatch, sweeper(1, oldOutputs, deleteOutput, nanos(now))},
		{"charges", &swept.Charges, sweepBatch, sumCharges(now.Add(-chargeKept).UTC().Format(time.DateOnly))},
	} {
		if err := s.sweep(ctx, task.count, task.batch, task.run); err != nil {
			return swept, fmt.Errorf("sweep %s: %w", task.what, err)
		}
	}
	return swept, nil
}

// sweep repeats a batch until one finds less than it may.
func (s *Store) sweep(ctx context.Context, count *int64, batch int, run func(context.Context, *queries, int) (int, error)) error {
	for {
		var n int
		err := s.maintain(ctx, func(ctx context.Context, q *queries) (err error) {
			n, err = run(ctx, q, batch)
			return err
		})
		if err != nil {
			return err
		}
		*count += int64(n)
		if n < batch {
			return nil
		}
	}
}

// sweeper runs a statement for each key, of some columns, that a query finds.
func sweeper(columns int, find, each string, until int64) func(context.Context, *queries, int) (int, error) {
	read := func(scan scanner) ([]any, error) {
		key, dests := make([]any, columns), make([]any, columns)
		for i := range key {
			dests[i] = &key[i]
		}
		return key, scan(dests...)
	}
	return func(ctx context.Context, q *queries, batch int) (int, error) {
		keys, err := list(ctx, q, read, find, until, batch)
		if err != nil {
			return 0, err
		}
		for _, key := range keys {
			if err := q.exec(ctx, each, key...); err != nil {
				return 0, err
			}
		}
		return len(keys), nil
	}
}

// sumCharges adds charges of days before one to the sums of their days.
func sumCharges(before string) func(context.Context, *queries, int) (int, error) {
	return func(ctx context.Context, q *queries, batch int) (int, error) {
		charges, err := list(ctx, q, scanCharge, oldCharges, before, batch)
		if err != nil {
			return 0, err
		}
		sums := map[bot.Charge]int64{}
		for _, c := range charges {
			if err := q.exec(ctx, deleteCharge, c.Key); err != nil {
				return 0, err
			}
			sums[bot.Charge{Scope: c.Scope, Unit: c.Unit, Day: c.Day}] += c.N
		}
		for c, n := range sums {
			if err := q.exec(ctx, addUsage, c.Day, c.Scope, c.Unit, n); err != nil {
				return 0, err
			}
		}
		return len(charges), nil
	}
}
