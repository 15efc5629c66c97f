// Package vector stores vectors and finds the most similar, in the process's database or in Qdrant.
package vector

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/vector/qdrant"
)

// The backends ([vector] backend).
const (
	Embedded = "embedded"
	Qdrant   = "qdrant"
)

// Tools is the collection of the tools of MCP servers (seed 001).
const Tools = "zeph_mcp_tools"

// Points stores the points of the backend Embedded. Safe for concurrent use. It retains none of the slices that it is
// given.
type Points interface {
	// EachPoint calls see for every point of a collection. An error of see ends it and is returned.
	EachPoint(ctx context.Context, collection string, see func(knn.Point) error) error
	// UpsertPoints stores or replaces points, all or none, durably.
	UpsertPoints(ctx context.Context, collection string, points []knn.Point) error
	// DeletePoints removes points, all or none. Unknown keys are ignored.
	DeletePoints(ctx context.Context, collection string, keys []string) error
}

// Store provides the collections of a backend. Safe for concurrent use. The caller must close it.
type Store interface {
	// Collection returns a collection, which is empty until something is stored and usable until Close. If the backend
	// is down, the methods of the Index fail.
	Collection(name string) knn.Index
	// Spaces are the collections that keep the vectors of many owners apart.
	Spaces() knn.Spaces
	// Ping checks whether the backend answers, within seconds.
	Ping(ctx context.Context) error
	Close() error
}

// Options of Open.
type Options struct {
	Backend string // Embedded or Qdrant; "" = Embedded
	URL     string // of Qdrant
	APIKey  string // of Qdrant; "" = none
	Points  Points // of the backend Embedded. The caller closes it after the Store
	// Rows stores the Spaces of the backend Embedded. The caller closes it after the Store;
	// nil = they are kept in memory.
	Rows knn.Rows
	// Memory bounds the copies of vectors of the backend Embedded, in bytes; 0 = 64 MiB.
	Memory int64
	Log    zerolog.Logger
}

// Open returns a Store. It does not wait for Qdrant: while it is down, each use fails.
func Open(o Options) (Store, error) {
	switch o.Backend {
	case "", Embedded:
		if o.Points == nil {
			return nil, errors.New("the embedded vector store has no database")
		}
		return newEmbedded(o), nil
	case Qdrant:
		store, err := qdrant.Open(qdrant.Options{URL: o.URL, APIKey: o.APIKey, Log: o.Log})
		if err != nil {
			return nil, err
		}
		return store, nil
	default:
		return nil, fmt.Errorf("vector.backend: %q is unknown: want %q or %q", o.Backend, Embedded, Qdrant)
	}
}
