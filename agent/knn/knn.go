// Package knn finds the nearest of many vectors. It defines the Index interface and provides an in-memory
// implementation with exact search. It knows nothing about the meaning of the vectors, so that stores can implement
// Index without depending on the catalog.
package knn

import "context"

// Point is one vector in an Index. Key names the thing that the vector represents, Hash distinguishes versions of it,
// and Payload is stored with it for people to look at.
type Point struct {
	Key, Hash string
	Vector    []float32
	Payload   map[string]string
}

// Hit is a point that was found. Score is the cosine similarity, -1..1.
type Hit struct {
	Key   string
	Score float32
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
