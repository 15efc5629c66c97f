package sql

import (
	"context"
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/bot/privacy/table"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	// freeLane takes a lane from its holder, as a move does.
	freeLane     = `UPDATE lane SET fence = fence + 1, owner = '', until = 0 WHERE session = ?`
	endJournal   = `DELETE FROM journal WHERE session = ?`
	refOfSession = `SELECT blob FROM blob_ref WHERE session = ? AND blob = CAST(? AS INTEGER)`
	moveSum      = `INSERT INTO usage (day, scope, unit, n) SELECT day, ?, unit, n FROM usage WHERE day = ? AND scope = ? AND unit = ?
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
)

var (
	_ table.Store  = (*Store)(nil)
	_ table.Reader = (*Reader)(nil)
)

// Alter implements table.Store.
func (s *Store) Alter(ctx context.Context, changes []table.Alteration) (altered int, err error) {
	err = s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		if err := s.memory.flushLanes(ctx, q); err != nil {
			return err
		}
		s.memory.forgetRows()
		altered = 0
		for i := range changes {
			done, err := s.alterRow(ctx, q, &changes[i])
			if err != nil {
				return fmt.Errorf("alter %s: %w", changes[i].Table.Name, err)
			}
			if done {
				altered++
			}
		}
		return nil
	})
	return altered, err
}

// alterRow makes one alteration if the row is still as it was read.
func (s *Store) alterRow(ctx context.Context, q *queries, a *table.Alteration) (bool, error) {
	name, deleted := a.Table.Name, a.Set == nil && a.Null == nil
	scope, renamed := a.Set["scope"]
	switch {
	case name == "lane" && !deleted && len(a.Set)+len(a.Null) == 0:
		n, err := q.execChanged(ctx, freeLane, a.Row["session"])
		return n > 0, err
	case name == "blob_ref" && deleted:
		return s.alterRef(ctx, q, a)
	case name == "usage" && renamed:
		if err := q.execOne(ctx, moveSum, scope, a.Row["day"], a.Row["scope"], a.Row["unit"]); err != nil {
			return false, err
		}
		deleted = true
	}
	n, err := rewriteRow(ctx, q, a, deleted)
	if err != nil || n == 0 || name != "lane" {
		return n > 0, err
	}
	then := freeLane
	if deleted {
		then = endJournal
	}
	return true, q.execOne(ctx, then, a.Row["session"])
}

// alterRef drops the reference of a session to a content, and the content with its last one.
func (s *Store) alterRef(ctx context.Context, q *queries, a *table.Alteration) (bool, error) {
	id, found, err := findNumber(ctx, q, refOfSession, a.Row["session"], a.Row["blob"])
	if err != nil || !found {
		return false, err
	}
	return true, s.dropRef(ctx, q, a.Row["session"], id)
}

const (
	// filler is the number of a content that nobody has, whose pieces fill the free pages.
	filler      = 0
	fillerPiece = 1 << 20 // bytes
	fillerBatch = 8       // pieces of one transaction

	freePages = `SELECT freelist_count FROM pragma_freelist_count()`
	addFiller = `INSERT INTO blob_piece (blob, n, data) VALUES (?, ?, zeroblob(?))`
	oldFiller = `DELETE FROM blob_piece WHERE blob = ? AND n IN (SELECT n FROM blob_piece WHERE blob = ? ORDER ` +
		`BY n LIMIT ?)`
)

// Scrub overwrites what was deleted: in pages that are in use the writer does so anyway (secure_delete), those that are
// free are filled with zeros, and the write-ahead log is brought to an end and cut. It works in small transactions,
// between which Changes run. What the file system or the disk keeps of overwritten blocks is beyond it.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.emptyFiller(ctx); err != nil { // of a process that was killed
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	n := int64(0)
	for left := true; left; {
		err := s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
			for range fillerBatch {
				free, _, err := findNumber(ctx, q, freePages)
				if left = free > 0; err != nil || !left {
					return err
				}
				if err := q.execOne(ctx, addFiller, filler, n, fillerPiece); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			return errors.Join(fmt.Errorf("overwrite free pages: %w", err), s.emptyFiller(context.WithoutCancel(ctx)))
		}
	}
	if err := s.emptyFiller(ctx); err != nil {
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	return s.cutLog(ctx)
}

func (s *Store) emptyFiller(ctx context.Context) error {
	for more := true; more; {
		err := s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
			n, err := q.execChanged(ctx, oldFiller, filler, filler, fillerBatch)
			more = n == fillerBatch
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errLogBusy means that somebody still reads the write-ahead log.
var errLogBusy = errors.New("the write-ahead log is in use by another program, and keeps old pages until it is not")

// cutLog writes the write-ahead log into the database and cuts it to nothing.
func (s *Store) cutLog(ctx context.Context) error {
	return s.submitJob(ctx, &job{done: make(chan struct{}), outside: func(ctx context.Context, q *queries) error {
		var busy, frames, moved int64
		_, err := q.queryOne(
			ctx, func(scan reading.Scan) error { return scan(&busy, &frames, &moved) }, "PRAGMA wal_checkpoint(TRUNCATE)",
		)
		s.guard.forgetFiles()
		if err == nil && busy != 0 {
			err = errLogBusy
		}
		if err != nil {
			return fmt.Errorf("cut the write-ahead log: %w", err)
		}
		return nil
	}})
}
