// Package vector keeps vectors and finds the most similar: embedded in the database of the process, or in Qdrant.
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

// Points keeps the points of the backend Embedded. Safe for concurrent use; it keeps none of the slices it is given.
type Points interface {
	// EachPoint shows every point of a collection; an error of see ends it and is returned.
	EachPoint(ctx context.Context, collection string, see func(knn.Point) error) error
	// UpsertPoints stores or replaces points, all or none, durably.
	UpsertPoints(ctx context.Context, collection string, points []knn.Point) error
	// DeletePoints removes points, all or none; unknown keys are none.
	DeletePoints(ctx context.Context, collection string, keys []string) error
}

// Store gives the collections of a backend. Safe for concurrent use. Close it.
type Store interface {
	// Collection is there without being made: it is empty until something is stored. It works until Close. The errors
	// of a backend that is away come from the Index.
	Collection(name string) knn.Index
	// Ping says whether the backend answers, within seconds.
	Ping(ctx context.Context) error
	Close() error
}

// Options of Open.
type Options struct {
	Backend string // Embedded or Qdrant; "" = Embedded
	URL     string // of Qdrant
	APIKey  string // of Qdrant; "" = none
	Points  Points // of the backend Embedded. The caller closes them, after the Store
	Log     zerolog.Logger
}

// Open makes a Store. It does not wait for Qdrant: one that is away is an error of each use, until it is back.
func Open(o Options) (Store, error) {
	switch o.Backend {
	case "", Embedded:
		if o.Points == nil {
			return nil, errors.New("the embedded vector store has no database")
		}
		return newEmbedded(o.Points), nil
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
