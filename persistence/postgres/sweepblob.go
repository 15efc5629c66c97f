package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	uploadKept = 24 * time.Hour // an upload without new data for this long will not be completed
	blobBatch  = 4              // files that are listed at a time; each is deleted in a transaction of its own
)

const (
	oldUploads = `SELECT '', id FROM blob WHERE hash = '' AND begun <= $1 ORDER BY begun LIMIT $2`
	oldRefs    = `SELECT session, blob FROM blob_ref WHERE used <= $1 ORDER BY used LIMIT $2`
	asideRefs  = `SELECT session, blob FROM blob_ref WHERE used <= $1 AND session = $3 LIMIT $2`
	// beginsQuery finds the next reset.
	beginsQuery = `SELECT session, n, body FROM journal WHERE reset AND (session, n) > ($1, $2) ORDER BY session, n
		LIMIT 1`
)

// refKey is a file of a session, or, without a session, an unfinished file.
type refKey struct {
	session string
	blob    int64
}

func scanRef(scan reading.Scan) (key refKey, err error) { return key, scan(&key.session, &key.blob) }

// sweepFiles deletes uploads that were never completed, files whose retention has expired, and files of conversations
// that ended long ago.
func (s *Store) sweepFiles(ctx context.Context, now time.Time, keep keeping.Retention, count *int64) error {
	if err := s.dropFiles(ctx, count, oldUploads, now.Add(-uploadKept)); err != nil {
		return err
	}
	if keep.Blobs > 0 {
		if err := s.dropFiles(ctx, count, oldRefs, now.Add(-keep.Blobs)); err != nil {
			return err
		}
	}
	if keep.Journal <= 0 {
		return nil
	}
	return s.asideFiles(ctx, now.Add(-keep.Journal), count)
}

// asideFiles deletes the files of conversations that were cleared. Files that were put again since then are in use.
func (s *Store) asideFiles(ctx context.Context, until time.Time, count *int64) error {
	return s.eachReset(ctx, beginsQuery, until, func(session string, _ int64, at time.Time) error {
		return s.dropFiles(ctx, count, asideRefs, at, session)
	})
}

// dropFiles deletes the files listed by a query that takes a time, the size of a batch and further arguments.
func (s *Store) dropFiles(ctx context.Context, count *int64, query string, until time.Time, more ...any) error {
	for {
		keys, err := reading.List(ctx, &s.reader, scanRef, query, append([]any{reading.Nanos(until), int64(blobBatch)}, more...)...)
		if err != nil {
			return s.problem("list files", err)
		}
		for _, key := range keys {
			err := s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
				if key.session == "" {
					return dropBlob(ctx, tx, key.blob)
				}
				return dropRef(ctx, tx, key.session, key.blob, reading.Nanos(until))
			})
			if err != nil {
				return err
			}
			*count++
		}
		if len(keys) < blobBatch {
			return nil
		}
	}
}
