package vector_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
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

// stocked returns a Space with n vectors of 512 numbers of one owner, and a query.
func stocked(b *testing.B, n int, memory int64) (knn.Space, []float32) {
	b.Helper()
	const size = 512
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		v := make([]float32, size)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	space, err := spaces(b, file(b, filepath.Join(b.TempDir(), "v.db")), memory).Space(knn.Kind{Name: "code", Model: "m", Size: size})
	check(b, err)
	for start := 0; start < n; start += knn.UpsertMost {
		batch := make([]knn.Point, min(knn.UpsertMost, n-start))
		for i := range batch {
			batch[i] = knn.Point{
				Scope: "workspace", Key: fmt.Sprintf("file%d.go#%d", (start+i)/10, (start+i)%10), Hash: "hash",
				Vector: random(), Payload: map[string]string{"path": "file.go", "start": "1", "end": "20"},
			}
		}
		check(b, space.Upsert(b.Context(), batch))
	}
	return space, random()
}

// benchmarkSpace measures a search for 20 hits among n vectors of one owner, and the memory that it leaves behind.
func benchmarkSpace(b *testing.B, n int, memory int64) {
	space, query := stocked(b, n, memory)
	filter := knn.Filter{Scopes: []string{"workspace"}}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if hits, err := space.Search(b.Context(), filter, query, 20); err != nil || len(hits) != 20 {
			b.Fatalf("%d hits (%v)", len(hits), err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/vector")
	b.ReportMetric(max(0, float64(after.HeapAlloc)-float64(before.HeapAlloc))/(1<<20), "MiB-held")
}

func BenchmarkSpace10000(b *testing.B)          { benchmarkSpace(b, 10_000, 0) }
func BenchmarkSpace10000Streamed(b *testing.B)  { benchmarkSpace(b, 10_000, 1) }
func BenchmarkSpace100000(b *testing.B)         { benchmarkSpace(b, 100_000, 1<<30) }
func BenchmarkSpace100000Streamed(b *testing.B) { benchmarkSpace(b, 100_000, 0) }

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
