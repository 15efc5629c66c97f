package reading

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
)

// EachPoint calls see for every point that a query finds: its key, hash, payload and vector. An error of see ends it
// and is returned. A point that cannot be read is logged and skipped; a caller that misses it stores it again.
func EachPoint(
	ctx context.Context, r Runner, log *zerolog.Logger, see func(knn.Point) error, query, collection string,
) error {
	return r.EachRow(ctx, func(scan Scan) error {
		var p knn.Point
		var payload string
		var vector []byte
		if err := scan(&p.Key, &p.Hash, Text{&payload}, &vector); err != nil {
			return err
		}
		if err := decodePoint(&p, payload, vector); err != nil {
			log.Warn().Err(err).Str("collection", collection).Str("key", p.Key).Msg("skipped a stored vector")
			return nil
		}
		return see(p)
	}, query, collection)
}

func decodePoint(p *knn.Point, payload string, vector []byte) error {
	if err := (Document{&p.Payload}).Scan(payload); err != nil {
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

// EncodedPoint is a point as it is stored: its payload in JSON, "" for none, and its numbers as little-endian float32.
type EncodedPoint struct {
	Key, Hash string
	Payload   []byte
	Vector    []byte
}

// EncodePoints returns the stored form of points of a collection, which must have a name.
func EncodePoints(collection string, points []knn.Point) ([]EncodedPoint, error) {
	if collection == "" {
		return nil, errors.New("store vectors: the collection has no name")
	}
	rows := make([]EncodedPoint, len(points))
	for i, p := range points {
		rows[i] = EncodedPoint{Key: p.Key, Hash: p.Hash, Payload: []byte{}, Vector: make([]byte, 0, 4*len(p.Vector))}
		if len(p.Payload) > 0 {
			payload, err := Encode(p.Payload)
			if err != nil {
				return nil, fmt.Errorf("store vector of %s: payload: %w", p.Key, err)
			}
			rows[i].Payload = payload
		}
		for _, x := range p.Vector {
			rows[i].Vector = binary.LittleEndian.AppendUint32(rows[i].Vector, math.Float32bits(x))
		}
	}
	return rows, nil
}
