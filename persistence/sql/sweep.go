package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

// How long data is kept.
const (
	rawKept     = 8 * 24 * time.Hour  // body of a finished arrival
	arrivalKept = 16 * 24 * time.Hour // its dedupe key
	contentKept = 30 * 24 * time.Hour // content of a row that was delivered or given up
	chargeKept  = 3 * 24 * time.Hour  // key of a charge; a turn that is restarted is restarted within minutes
	usageKept   = 400                 // days of sums of charges; quotas look back one month
	sweepBatch  = 500                 // rows of one transaction, small enough for Changes to run in between
	largeBatch  = 20                  // rows of one transaction if each can have megabytes
	blobBatch   = 4                   // files of one transaction: deleting 20 MB takes about 50 ms
	uploadKept  = 24 * time.Hour      // an upload without new data for this long will not be completed
)

// Retention says how long data is kept after it is no longer needed; 0 = forever.
type Retention = keeping.Retention

// Swept says what a Sweep removed.
type Swept = keeping.Swept

// The old queries take a time and the size of a batch and return the keys of rows; the others take one such key. They
// are separate, because with a subquery for the keys the planner may choose to walk over the table.
const (
	oldBodies = `SELECT seq FROM inbox WHERE finished > 0 AND raw IS NOT NULL AND finished <= ? ORDER BY finished
		LIMIT CAST(? AS INTEGER)`
	forgetBody  = `UPDATE inbox SET raw = NULL WHERE seq = ?`
	oldArrivals = `SELECT seq FROM inbox WHERE finished > 0 AND raw IS NULL AND finished <= ? ORDER BY finished
		LIMIT CAST(? AS INTEGER)`
	deleteArrival = `DELETE FROM inbox WHERE seq = ?`
	oldContents   = `SELECT id FROM outbox WHERE finished > 0 AND content IS NOT NULL AND finished <= ?
		ORDER BY finished LIMIT CAST(? AS INTEGER)`
	forgetContent = `UPDATE outbox SET content = NULL WHERE id = ?`
	oldFacts      = `SELECT bucket, key FROM fact WHERE expires > 0 AND expires <= ? ORDER BY expires
		LIMIT CAST(? AS INTEGER)`
	oldOutputs = `SELECT id FROM tool_overflow WHERE expires > 0 AND expires <= ? ORDER BY expires
		LIMIT CAST(? AS INTEGER)`
	deleteOutput = `DELETE FROM tool_overflow WHERE id = ?`

	oldRows = `SELECT id FROM outbox AS old WHERE finished > 0 AND content IS NULL AND finished <= ?
AND NOT EXISTS (SELECT 1 FROM approval WHERE card = old.id AND state = 'pending')
AND NOT EXISTS (SELECT 1 FROM outbox WHERE edit_row = old.id AND edit_row > 0 AND finished = 0)
ORDER BY finished LIMIT CAST(? AS INTEGER)`
	deleteRow = `DELETE FROM outbox WHERE id = ?`

	// resetsQuery finds the next reset that has entries before it.
	resetsQuery = `SELECT session, n, body FROM journal AS began WHERE reset = 1 AND (session, n) > (?, ?)
AND EXISTS (SELECT 1 FROM journal WHERE session = began.session AND n < began.n) ORDER BY session, n LIMIT 1`
	asideQuery  = `SELECT session, n FROM journal WHERE session = ? AND n < ? ORDER BY n LIMIT CAST(? AS INTEGER)`
	deleteEntry = `DELETE FROM journal WHERE session = ? AND n = ?`

	oldUploads  = `SELECT id FROM blob WHERE hash = '' AND begun <= ? ORDER BY begun LIMIT CAST(? AS INTEGER)`
	oldRefs     = `SELECT session, blob FROM blob_ref WHERE used <= ? ORDER BY used LIMIT CAST(? AS INTEGER)`
	asideRefs   = `SELECT session, blob FROM blob_ref WHERE session = ? AND used <= ? LIMIT CAST(? AS INTEGER)`
	beginsQuery = `SELECT session, n, body FROM journal WHERE reset = 1 AND (session, n) > (?, ?) ORDER BY session, n
		LIMIT 1`

	oldCharges   = `SELECT key, scope, unit, day, n FROM charge WHERE day < ? ORDER BY day LIMIT CAST(? AS INTEGER)`
	deleteCharge = `DELETE FROM charge WHERE key = ?`
	addUsage     = `INSERT INTO usage (day, scope, unit, n) VALUES (?, ?, ?, ?)
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
)

// Sweep deletes data that is no longer needed at now: bodies of arrivals finished more than 8 days ago and, after 16
// days, the fact that they arrived; contents of rows finished more than 30 days ago (the row and its key are kept);
// expired facts and outputs; the keys of charges more than 3 days old, which become one sum per day, scope and unit. It
// works in small batches, between which Changes can run, and stops when ctx ends.
//
// Files are deleted when keep says so, and with the conversation that they belong to; a file of several sessions is
// deleted with the last of them.
//
// The following is deleted when keep says so: outbox rows with their keys, unless an open question or a row that is
// still to be sent refers to them; journal entries before the last reset; decided questions, unless their turn
// continues or they approved something for a conversation that continues; and lanes of conversations without a message
// since their last reset and to which nothing refers. The fence of such a lane starts at 0 again.
func (s *Store) Sweep(ctx context.Context, now time.Time, keep Retention) (Swept, error) {
	var swept Swept
	tasks := []sweepTask{
		{
			"bodies of arrivals",
			&swept.Bodies,
			sweepBatch,
			newSweeper(1, oldBodies, forgetBody, reading.Nanos(now.Add(-rawKept))),
		},
		{
			"arrivals",
			&swept.Arrivals,
			sweepBatch,
			newSweeper(1, oldArrivals, deleteArrival, reading.Nanos(now.Add(-arrivalKept))),
		},
		{
			"contents of rows", &swept.Contents, sweepBatch,
			newSweeper(1, oldContents, forgetContent, reading.Nanos(now.Add(-contentsKept(keep)))),
		},
		{"facts", &swept.Facts, sweepBatch, newSweeper(2, oldFacts, deleteFact, reading.Nanos(now))},
		{"outputs", &swept.Outputs, largeBatch, newSweeper(1, oldOutputs, deleteOutput, reading.Nanos(now))},
		{"unfinished files", &swept.Blobs, blobBatch, s.sweepUploads(now.Add(-uploadKept))},
		{"charges", &swept.Charges, sweepBatch, sumCharges(now.Add(-chargeKept).UTC().Format(time.DateOnly))},
		{
			"sums of charges",
			&swept.Sums,
			sweepBatch,
			func(ctx context.Context, q *queries, batch int) (int, bool, error) {
				before := now.UTC().AddDate(0, 0, -usageKept).Format(time.DateOnly)
				n, err := deleteKeys(ctx, q, usageColumns, oldUsage, forgetUsage, before, batch)
				return n, n == batch, err
			},
		},
	}
	if keep.Outbox > 0 {
		rows := newSweeper(1, oldRows, deleteRow, reading.Nanos(now.Add(-keep.Outbox)))
		tasks = append(tasks, sweepTask{"rows", &swept.Rows, sweepBatch, rows})
	}
	if keep.Blobs > 0 {
		tasks = append(tasks, sweepTask{"files", &swept.Blobs, blobBatch, s.sweepRefs(now.Add(-keep.Blobs))})
	}
	if keep.Journal > 0 {
		until := now.Add(-keep.Journal)
		files := &putAside{until: until, query: beginsQuery, remove: s.asideFiles}
		words := &putAside{until: until, query: resetsQuery, remove: asideEntries}
		tasks = append(
			tasks, sweepTask{"files of journals", &swept.Blobs, blobBatch, files.sweep},
			sweepTask{"journals", &swept.Entries, sweepBatch, words.sweep},
			sweepTask{"questions", &swept.Asked, sweepBatch, (&oldQuestions{memory: s.memory, until: until}).sweep},
			sweepTask{"lanes", &swept.Lanes, sweepBatch, (&emptyLanes{memory: s.memory, until: until}).sweep},
		)
	}
	for i := range tasks {
		if err := s.sweepTable(ctx, &tasks[i]); err != nil {
			return swept, fmt.Errorf("sweep %s: %w", tasks[i].what, err)
		}
	}
	return swept, nil
}

// sweepTask is one kind of data to sweep.
type sweepTask struct {
	what  string
	count *int64
	batch int
	// run processes one batch; more: there may be another one.
	run func(ctx context.Context, q *queries, batch int) (n int, more bool, err error)
}

// contentsKept returns how long contents of rows are kept: not longer than the rows.
func contentsKept(keep Retention) time.Duration {
	if keep.Outbox > 0 {
		return min(contentKept, keep.Outbox)
	}
	return contentKept
}

// sweepTable repeats a batch until nothing is left.
func (s *Store) sweepTable(ctx context.Context, task *sweepTask) error {
	for more := true; more; {
		var n int
		err := s.runMaintenance(ctx, func(ctx context.Context, q *queries) (err error) {
			n, more, err = task.run(ctx, q, task.batch)
			return err
		})
		if err != nil {
			return err
		}
		*task.count += int64(n)
	}
	return nil
}

// newSweeper runs a statement for each key, which consists of some columns, that a query finds.
func newSweeper(columns int, find, each string, until int64) func(context.Context, *queries, int) (int, bool, error) {
	return func(ctx context.Context, q *queries, batch int) (int, bool, error) {
		n, err := deleteKeys(ctx, q, columns, find, each, until, batch)
		return n, n == batch, err
	}
}

// deleteKeys is one batch of a sweeper.
func deleteKeys(ctx context.Context, q *queries, columns int, find, each string, args ...any) (int, error) {
	keys, err := reading.List(ctx, q, func(scan reading.Scan) ([]any, error) {
		key, dests := make([]any, columns), make([]any, columns)
		for i := range key {
			dests[i] = &key[i]
		}
		return key, scan(dests...)
	}, find, args...)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		if err := q.execOne(ctx, each, key...); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// putAside iterates over the journals and deletes what belongs before a reset that is old enough.
type putAside struct {
	until   time.Time
	query   string // finds the next reset
	remove  func(ctx context.Context, q *queries, session string, reset *journal.Entry, limit int) (int, error)
	session string // position of the iteration: after this reset
	n       int64
}

// sweep processes at most a batch; more is false at the end of the iteration.
func (p *putAside) sweep(ctx context.Context, q *queries, batch int) (deleted int, more bool, err error) {
	for deleted < batch {
		session, reset, found, err := p.nextSession(ctx, q)
		if err != nil || !found {
			return deleted, false, err
		}
		if !reset.At.IsZero() && !reset.At.After(p.until) {
			n, err := p.remove(ctx, q, session, &reset, batch-deleted)
			if err != nil {
				return deleted, false, err
			}
			if deleted += n; deleted == batch {
				return deleted, true, nil // there may be more before this reset
			}
		}
		p.session, p.n = session, reset.N
	}
	return deleted, true, nil
}

// nextSession reads the next reset.
func (p *putAside) nextSession(
	ctx context.Context, q *queries,
) (session string, reset journal.Entry, found bool, err error) {
	see := func(scan reading.Scan) error { return scan(&session, &reset.N, reading.Document{To: &reset}) }
	found, err = q.queryOne(ctx, see, p.query, p.session, p.n)
	return session, reset, found, err
}

// asideEntries deletes entries before a reset.
func asideEntries(ctx context.Context, q *queries, session string, reset *journal.Entry, limit int) (int, error) {
	return deleteKeys(ctx, q, 2, asideQuery, deleteEntry, session, reset.N, limit)
}

// sumCharges adds charges of days before a date to the sums of their days.
func sumCharges(before string) func(context.Context, *queries, int) (int, bool, error) {
	return func(ctx context.Context, q *queries, batch int) (int, bool, error) {
		charges, err := reading.List(ctx, q, reading.ScanCharge, oldCharges, before, batch)
		if err != nil {
			return 0, false, err
		}
		sums := map[bot.Charge]int64{}
		for _, c := range charges {
			if err := q.execOne(ctx, deleteCharge, c.Key); err != nil {
				return 0, false, err
			}
			sums[bot.Charge{Scope: c.Scope, Unit: c.Unit, Day: c.Day}] += c.N
		}
		for c, n := range sums {
			if err := q.execOne(ctx, addUsage, c.Day, c.Scope, c.Unit, n); err != nil {
				return 0, false, err
			}
		}
		return len(charges), len(charges) == batch, nil
	}
}
