// Package knn finds the nearest of many vectors: what an index of vectors is, and one in memory with exact search. It
// knows nothing of what the vectors mean, so that stores implement it without knowing the catalog that uses it.
package knn

import "context"

// Point is one vector in an Index. Key names what it stands for, Hash tells versions of that apart, and Payload is kept
// with it for people who look.
type Point struct {
	Key, Hash string
	Vector    []float32
	Payload   map[string]string
}

// Hit is a point that was found. Score is the cosine, -1..1.
type Hit struct {
	Key   string
	Score float32
}

// Index keeps vectors. Safe for concurrent use; it keeps none of the slices it is given.
type Index interface {
	// Hashes lists the hash of every point by its key.
	Hashes(ctx context.Context) (map[string]string, error)
	// Upsert stores points; one whose key exists is replaced, also when its vector has another length.
	Upsert(ctx context.Context, points []Point) error
	// Delete removes points; unknown keys are none.
	Delete(ctx context.Context, keys []string) error
	// Search gives at most limit points, the most similar first. Points whose vectors have another length are passed
	// over.
	Search(ctx context.Context, vector []float32, limit int) ([]Hit, error)
}
