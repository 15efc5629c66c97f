package sql

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence/reading"
)

// refKey is a file of a session.
type refKey struct {
	session string
	blob    int64
}

func scanRef(scan reading.Scan) (key refKey, err error) {
	err = scan(&key.session, &key.blob)
	return key, err
}

// sweepRefs removes files from sessions that last put them before a time.
func (s *Store) sweepRefs(until time.Time) func(context.Context, *queries, int) (int, bool, error) {
	return func(ctx context.Context, q *queries, batch int) (int, bool, error) {
		n, err := s.dropRefs(ctx, q, oldRefs, reading.Nanos(until), batch)
		return n, n == batch, err
	}
}

// asideFiles removes the files of a conversation that ended with a reset. Files that were put again since then are in
// use.
func (s *Store) asideFiles(
	ctx context.Context, q *queries, session string, reset *journal.Entry, limit int,
) (int, error) {
	return s.dropRefs(ctx, q, asideRefs, session, reading.Nanos(reset.At), limit)
}

// dropRefs removes the files that a query lists.
func (s *Store) dropRefs(ctx context.Context, q *queries, query string, args ...any) (int, error) {
	keys, err := reading.List(ctx, q, scanRef, query, args...)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		if err := s.dropRef(ctx, q, key.session, key.blob); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// sweepUploads deletes incomplete uploads of processes that died.
func (s *Store) sweepUploads(until time.Time) func(context.Context, *queries, int) (int, bool, error) {
	return func(ctx context.Context, q *queries, batch int) (int, bool, error) {
		ids, err := reading.List(ctx, q, func(scan reading.Scan) (id int64, err error) {
			err = scan(&id)
			return id, err
		}, oldUploads, reading.Nanos(until), batch)
		if err != nil {
			return 0, false, err
		}
		for _, id := range ids {
			if err := s.dropBlob(ctx, q, id); err != nil {
				return 0, false, err
			}
		}
		return len(ids), len(ids) == batch, nil
	}
}
