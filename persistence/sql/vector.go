package sql

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/zephbot/zephbot/agent/knn"
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
	err := s.q.queryEach(ctx, func(scan scanner) error {
		var p knn.Point
		var payload string
		var vector []byte
		if err := scan(&p.Key, &p.Hash, &payload, &vector); err != nil {
			return err
		}
		if err := readPoint(&p, payload, vector); err != nil {
			s.options.Log.Warn().Err(err).Str("collection", collection).Str("key", p.Key).
				Msg("skipped a stored vector")
			return nil
		}
		return see(p)
	}, pointsQuery, collection)
	return s.wrapProblem("read the vectors of "+collection, err)
}

func readPoint(p *knn.Point, payload string, vector []byte) error {
	if payload != "" {
		if err := json.Unmarshal([]byte(payload), &p.Payload); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
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
// it returns. It gives up with ctx while it waits for the writer.
func (s *Store) UpsertPoints(ctx context.Context, collection string, points []knn.Point) error {
	if collection == "" {
		return errors.New("store vectors: the collection has no name")
	}
	type row struct {
		payload string
		vector  []byte
	}
	rows := make([]row, len(points)) // built here, so that the writer does not wait for it
	for i, p := range points {
		if len(p.Payload) > 0 {
			payload, err := json.Marshal(p.Payload)
			if err != nil {
				return fmt.Errorf("store vector of %s: payload: %w", p.Key, err)
			}
			rows[i].payload = string(payload)
		}
		rows[i].vector = make([]byte, 0, 4*len(p.Vector))
		for _, x := range p.Vector {
			rows[i].vector = binary.LittleEndian.AppendUint32(rows[i].vector, math.Float32bits(x))
		}
	}
	err := s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		for i, p := range points {
			if err := q.execOne(
				ctx, upsertPoint, collection, p.Key, p.Hash, rows[i].payload, rows[i].vector,
			); err != nil {
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
