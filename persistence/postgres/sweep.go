package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

// How long data is kept, as in the SQLite store.
const (
	rawKept     = 8 * 24 * time.Hour  // body of a finished arrival
	arrivalKept = 16 * 24 * time.Hour // its dedupe key
	contentKept = 30 * 24 * time.Hour // content of a row that was delivered or given up
	chargeKept  = 3 * 24 * time.Hour  // key of a charge; a turn that is restarted is restarted within minutes
	usageKept   = 400                 // days of sums of charges; quotas look back one month
	appliedKept = time.Hour           // number of a Change; if its answer was lost, it is looked up within seconds
	sweepBatch  = 500                 // rows of one transaction
	largeBatch  = 20                  // rows of one transaction if each can have megabytes
)

// The queries of sweep take a time, or a day, and the size of a batch.
const (
	forgetBodies = `UPDATE inbox SET raw = NULL WHERE (session, seq) IN (
	SELECT session, seq FROM inbox WHERE finished > 0 AND raw IS NOT NULL AND finished <= $1 ORDER BY finished
	LIMIT $2)`
	deleteArrivals = `DELETE FROM inbox WHERE (session, seq) IN (
	SELECT session, seq FROM inbox WHERE finished > 0 AND raw IS NULL AND finished <= $1 ORDER BY finished LIMIT $2)`
	forgetContents = `UPDATE outbox SET content = NULL WHERE (session, id) IN (
	SELECT session, id FROM outbox WHERE finished > 0 AND content IS NOT NULL AND finished <= $1 ORDER BY finished
	LIMIT $2)`
	deleteRows = `DELETE FROM outbox WHERE (session, id) IN (
	SELECT session, id FROM outbox AS old WHERE finished > 0 AND content IS NULL AND finished <= $1
	AND NOT EXISTS (SELECT 1 FROM approval WHERE card = old.id AND state = 'pending')
	AND NOT EXISTS (SELECT 1 FROM outbox WHERE edit_row = old.id AND edit_row > 0 AND finished = 0)
	ORDER BY finished LIMIT $2)`
	deleteFacts = `DELETE FROM fact WHERE (bucket, key) IN (
	SELECT bucket, key FROM fact WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2)`
	deleteOutputs = `DELETE FROM tool_overflow WHERE (session, id) IN (
	SELECT session, id FROM tool_overflow WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2)`
	deleteApplied = `DELETE FROM applied WHERE change = ANY(ARRAY(SELECT change FROM applied WHERE at <= $1
		ORDER BY at LIMIT $2))`
	sumCharges = `WITH gone AS (
	DELETE FROM charge WHERE key = ANY(ARRAY(SELECT key FROM charge WHERE day < $1 ORDER BY day LIMIT $2))
	RETURNING day, scope, unit, n
), sums AS (
	INSERT INTO usage (day, scope, unit, n) SELECT day, scope, unit, SUM(n)::bigint FROM gone GROUP BY day, scope, unit
	ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n
) SELECT day FROM gone`

	// resetsQuery finds the next reset that has entries before it.
	resetsQuery = `SELECT session, n, body FROM journal AS began WHERE reset AND (session, n) > ($1, $2)
AND EXISTS (SELECT 1 FROM journal WHERE session = began.session AND n < began.n) ORDER BY session, n LIMIT 1`
	deleteEntries = `DELETE FROM journal WHERE session = $1 AND n IN (SELECT n FROM journal WHERE session = $1
		AND n < $2 ORDER BY n LIMIT $3)`
)

// sweepTask is one kind of data to sweep.
type sweepTask struct {
	what  string
	count *int64
	batch int64
	query string
	until any
}

// Sweep deletes data that is no longer needed at now, as the SQLite store does (sql.Store.Sweep), and the numbers of
// Changes that are older than an hour. Each batch is a transaction of its own. It stops when ctx ends. Several
// processes can sweep at once.
func (s *Store) Sweep(ctx context.Context, now time.Time, keep keeping.Retention) (keeping.Swept, error) {
	var swept keeping.Swept
	var numbers int64
	contents := contentKept
	if keep.Outbox > 0 {
		contents = min(contents, keep.Outbox)
	}
	tasks := []sweepTask{
		{"bodies of arrivals", &swept.Bodies, sweepBatch, forgetBodies, reading.Nanos(now.Add(-rawKept))},
		{"arrivals", &swept.Arrivals, sweepBatch, deleteArrivals, reading.Nanos(now.Add(-arrivalKept))},
		{"contents of rows", &swept.Contents, sweepBatch, forgetContents, reading.Nanos(now.Add(-contents))},
		{"facts", &swept.Facts, sweepBatch, deleteFacts, reading.Nanos(now)},
		{"outputs", &swept.Outputs, largeBatch, deleteOutputs, reading.Nanos(now)},
		{"charges", &swept.Charges, sweepBatch, sumCharges, now.Add(-chargeKept).UTC().Format(time.DateOnly)},
		{
			"sums of charges", &swept.Sums, sweepBatch, deleteSums,
			now.UTC().AddDate(0, 0, -usageKept).Format(time.DateOnly),
		},
		{"numbers of changes", &numbers, sweepBatch, deleteApplied, reading.Nanos(s.clock.stored(now).Add(-appliedKept))},
	}
	if keep.Outbox > 0 {
		tasks = append(tasks, sweepTask{"rows", &swept.Rows, sweepBatch, deleteRows, reading.Nanos(now.Add(-keep.Outbox))})
	}
	for _, task := range tasks {
		if err := s.sweep(ctx, task); err != nil {
			return swept, fmt.Errorf("sweep %s: %w", task.what, err)
		}
	}
	if err := s.sweepFiles(ctx, now, keep, &swept.Blobs); err != nil {
		return swept, fmt.Errorf("sweep files: %w", err)
	}
	if keep.Journal <= 0 {
		return swept, nil
	}
	until := now.Add(-keep.Journal)
	if err := s.sweepJournals(ctx, until, &swept.Entries); err != nil {
		return swept, fmt.Errorf("sweep journals: %w", err)
	}
	if err := s.pruneQuestions(ctx, until, &swept.Asked); err != nil {
		return swept, fmt.Errorf("sweep questions: %w", err)
	}
	if err := s.pruneLanes(ctx, until, &swept.Lanes); err != nil {
		return swept, fmt.Errorf("sweep lanes: %w", err)
	}
	return swept, nil
}

// sweep repeats a batch until one finds less than its limit.
func (s *Store) sweep(ctx context.Context, task sweepTask) error {
	for {
		n, err := s.sweepOnce(ctx, task.query, task.until, task.batch)
		if err != nil {
			return err
		}
		*task.count += n
		if n < task.batch {
			return nil
		}
	}
}

// sweepOnce runs a repeatable statement and returns how many rows it changed.
func (s *Store) sweepOnce(ctx context.Context, query string, args ...any) (int64, error) {
	done, err := s.begin()
	if err != nil {
		return 0, err
	}
	defer done()
	s.told(query)
	tag, err := s.pool.Exec(ctx, query, cleaned(args)...)
	return tag.RowsAffected(), unavailable(s.where, "write", err)
}

// sweepJournals deletes entries before a reset that is old enough.
func (s *Store) sweepJournals(ctx context.Context, until time.Time, count *int64) error {
	return s.eachReset(ctx, resetsQuery, until, func(session string, n int64, _ time.Time) (err error) {
		for deleted := int64(sweepBatch); deleted == sweepBatch; *count += deleted {
			if deleted, err = s.sweepOnce(ctx, deleteEntries, session, n, int64(sweepBatch)); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachReset calls do for each place where a conversation was cleared up to until, in the order of a query that lists
// them.
func (s *Store) eachReset(
	ctx context.Context, query string, until time.Time, do func(session string, n int64, at time.Time) error,
) error {
	var session string
	var n int64
	for {
		var reset journal.Entry
		find := func(scan reading.Scan) error { return scan(&session, &n, reading.Document{To: &reset}) }
		found, err := reading.One(ctx, &s.reader, find, query, session, n)
		if err != nil {
			return s.problem("find resets", err)
		}
		if !found {
			return nil
		}
		if reset.At.IsZero() || reset.At.After(until) {
			continue
		}
		if err := do(session, n, reset.At); err != nil {
			return err
		}
	}
}
