package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/zephbot/zephbot/agent/knn"
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
	err := s.each(ctx, func(r row) error {
		var p knn.Point
		var payload, vector []byte
		if err := r.Scan(&p.Key, &p.Hash, &payload, &vector); err != nil {
			return err
		}
		if err := readPoint(&p, payload, vector); err != nil {
			s.options.Log.Warn().Err(err).Str("collection", collection).Str("key", p.Key).
				Msg("skipped a stored vector")
			return nil
		}
		return see(p)
	}, pointsQuery, collection)
	return s.problem("read the vectors of "+collection, err)
}

func readPoint(p *knn.Point, payload, vector []byte) error {
	if err := (document{&p.Payload}).Scan(payload); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	if len(vector)%4 != 0 {
		return fmt.Errorf("vector: %d bytes are not float32 numbers", len(vector))
	}
	p.Vector = make([]float32, len(vector)/4)
	for i := range p.Vector {
		p.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(vector[4*i:]))
	}
	return nil
}

// UpsertPoints stores points, all or none. An existing point with the same key is replaced. The points are durable when
// it returns.
func (s *Store) UpsertPoints(ctx context.Context, collection string, points []knn.Point) error {
	if collection == "" {
		return errors.New("store vectors: the collection has no name")
	}
	b := &batch{}
	for _, p := range points {
		payload := []byte{}
		if len(p.Payload) > 0 {
			var err error
			if payload, err = encode(p.Payload); err != nil {
				return fmt.Errorf("store vector of %s: payload: %w", p.Key, err)
			}
		}
		vector := make([]byte, 0, 4*len(p.Vector))
		for _, x := range p.Vector {
			vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(x))
		}
		b.do(upsertPoint, collection, p.Key, p.Hash, payload, vector)
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
