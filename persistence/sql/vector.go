package sql

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	pointsQuery = `SELECT key, hash, payload, vector FROM vector_point WHERE collection = ? ORDER BY key`
	upsertPoint = `INSERT INTO vector_point (collection, key, hash, payload, vector) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (collection, key) DO UPDATE SET hash = excluded.hash, payload = excluded.payload, vector = excluded.vector`
	deletePoint = `DELETE FROM vector_point WHERE collection = ? AND key = ?`
)

// EachPoint calls see for every point of a collection, ordered by key. An error of see ends it and is returned. A point
// that cannot be read is logged and skipped; a caller that misses it stores it again.
func (s *Store) EachPoint(ctx context.Context, collection string, see func(knn.Point) error) error {
	err := reading.EachPoint(ctx, s.q, &s.options.Log, see, pointsQuery, collection)
	return s.wrapProblem("read the vectors of "+collection, err)
}

// UpsertPoints stores points, all or none. An existing point with the same key is replaced. The points are durable when
// it returns. It gives up with ctx while it waits for the writer.
func (s *Store) UpsertPoints(ctx context.Context, collection string, points []knn.Point) error {
	rows, err := reading.EncodePoints(collection, points) // here, so that the writer does not wait for it
	if err != nil {
		return err
	}
	err = s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		for i := range rows {
			p := &rows[i]
			if err := q.execOne(ctx, upsertPoint, collection, p.Key, p.Hash, string(p.Payload), p.Vector); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store vectors of %s: %w", collection, err)
	}
	return nil
}

// DeletePoints removes points of a collection, all or none. Unknown keys are ignored. It gives up with ctx while it
// waits for the writer.
func (s *Store) DeletePoints(ctx context.Context, collection string, keys []string) error {
	err := s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		for _, key := range keys {
			if err := q.execOne(ctx, deletePoint, collection, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove vectors of %s: %w", collection, err)
	}
	return nil
}
