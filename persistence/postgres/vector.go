package postgres

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	pointsQuery = `SELECT key, hash, payload, vector FROM vector_point WHERE collection = $1 ORDER BY key`
	upsertPoint = `INSERT INTO vector_point (collection, key, hash, payload, vector) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (collection, key) DO UPDATE SET hash = excluded.hash, payload = excluded.payload, vector = excluded.vector`
	deletePoints = `DELETE FROM vector_point WHERE collection = $1 AND key = ANY($2::text[])`
)

// EachPoint calls see for every point of a collection, ordered by key. An error of see ends it and is returned. A point
// that cannot be read is logged and skipped; a caller that misses it stores it again.
func (s *Store) EachPoint(ctx context.Context, collection string, see func(knn.Point) error) error {
	err := reading.EachPoint(ctx, s, &s.options.Log, see, pointsQuery, collection)
	return s.problem("read the vectors of "+collection, err)
}

// UpsertPoints stores points, all or none. An existing point with the same key is replaced. The points are durable when
// it returns.
func (s *Store) UpsertPoints(ctx context.Context, collection string, points []knn.Point) error {
	rows, err := reading.EncodePoints(collection, points)
	if err != nil {
		return err
	}
	b := &batch{}
	for i := range rows {
		p := &rows[i]
		b.do(upsertPoint, collection, p.Key, p.Hash, p.Payload, p.Vector)
	}
	if err := s.maintain(ctx, b); err != nil {
		return fmt.Errorf("store vectors of %s: %w", collection, err)
	}
	return nil
}

// DeletePoints removes points of a collection, all or none. Unknown keys are ignored.
func (s *Store) DeletePoints(ctx context.Context, collection string, keys []string) error {
	b := &batch{}
	b.do(deletePoints, collection, keys)
	if err := s.maintain(ctx, b); err != nil {
		return fmt.Errorf("remove vectors of %s: %w", collection, err)
	}
	return nil
}
