package vector_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/vector"
)

// filled returns an embedded index of n vectors, and a query.
func filled(b *testing.B, n, size int) (vector.Store, []float32) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		v := make([]float32, size)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	points := make([]knn.Point, n)
	for i := range points {
		points[i] = point(fmt.Sprintf("server:tool%05d", i), "hash", random()...)
	}
	db := database(b, filepath.Join(b.TempDir(), "zephbot.db"))
	check(b, embedded(b, db).Collection(vector.Tools).Upsert(b.Context(), points))
	return embedded(b, db), random() // one that has not been loaded yet
}

func benchmarkSearch(b *testing.B, n, size int) {
	store, query := filled(b, n, size)
	index := store.Collection(vector.Tools)
	for b.Loop() {
		hits, err := index.Search(b.Context(), query, 20)
		if err != nil || len(hits) != 20 {
			b.Fatalf("%d hits (%v)", len(hits), err)
		}
	}
}

func BenchmarkSearch1000(b *testing.B)  { benchmarkSearch(b, 1000, 256) }
func BenchmarkSearch10000(b *testing.B) { benchmarkSearch(b, 10_000, 256) }

// BenchmarkLoad10000 measures the additional time of the first search after a start.
func BenchmarkLoad10000(b *testing.B) {
	db := database(b, filepath.Join(b.TempDir(), "zephbot.db"))
	points := make([]knn.Point, 10_000)
	for i := range points {
		points[i] = point(fmt.Sprintf("server:tool%05d", i), "hash", make([]float32, 256)...)
	}
	check(b, embedded(b, db).Collection(vector.Tools).Upsert(b.Context(), points))
	for b.Loop() {
		if hashes, err := embedded(b, db).Collection(vector.Tools).Hashes(b.Context()); err != nil || len(hashes) != len(points) {
			b.Fatalf("%d hashes (%v)", len(hashes), err)
		}
	}
}
