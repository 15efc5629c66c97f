// Package knn finds the nearest of many vectors. An Index belongs to the service as a whole (the descriptions of
// tools); a Space keeps the vectors of many owners apart (code, memories). Both interfaces have an in-memory
// implementation with exact search here. The package knows nothing about the meaning of the vectors, so that stores can
// implement the interfaces without depending on what uses them.
package knn

import "context"

// Point is one vector. Key names the thing that the vector represents, unique in its Index, or in its Scope of a Space.
// Hash distinguishes versions of it. Payload is stored with it: an Index keeps it for people to look
// at, a Space returns it with hits.
type Point struct {
	Scope     string // the owner, in a Space; "" in an Index
	Key, Hash string
	Vector    []float32
	Payload   map[string]string
}

// Hit is a point that was found. Score is the cosine similarity, -1..1. An Index sets Key and Score only.
type Hit struct {
	Scope, Key string
	Score      float32
	Payload    map[string]string
}

// Index stores vectors. Safe for concurrent use. It retains none of the slices that it is given.
type Index interface {
	// Hashes returns the hash of every point by its key.
	Hashes(ctx context.Context) (map[string]string, error)
	// Upsert stores points. An existing point with the same key is replaced, even if the length of its vector differs.
	Upsert(ctx context.Context, points []Point) error
	// Delete removes points. Unknown keys are ignored.
	Delete(ctx context.Context, keys []string) error
	// Search returns at most limit points, the most similar first. Points whose vectors have another length are
	// skipped.
	Search(ctx context.Context, vector []float32, limit int) ([]Hit, error)
}
