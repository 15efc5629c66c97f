package vector_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/sql/points"
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

const (
	benchSize  = 512
	benchScope = "workspace"
)

var benchKind = knn.Kind{Name: "code", Model: "m", Size: benchSize}

// stocked returns a file with n vectors of 512 numbers of one owner, its path, and a query.
func stocked(b *testing.B, n int) (rows *points.File, path string, query []float32) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		v := make([]float32, benchSize)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	path = filepath.Join(b.TempDir(), "v.db")
	rows = file(b, path)
	space, err := spaces(b, rows, 0).Space(benchKind)
	check(b, err)
	for start := 0; start < n; start += knn.UpsertMost {
		batch := make([]knn.Point, min(knn.UpsertMost, n-start))
		for i := range batch {
			batch[i] = knn.Point{
				Scope: benchScope, Key: fmt.Sprintf("file%d.go#%d", (start+i)/10, (start+i)%10), Hash: "hash",
				Vector: random(), Payload: map[string]string{"path": "file.go", "start": "1", "end": "20"},
			}
		}
		check(b, space.Upsert(b.Context(), batch))
	}
	return rows, path, random()
}

// processor is the time of this process, which other work on the machine does not lengthen.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measured runs a benchmark and reports its processor time, and the memory that it leaves behind.
func measured(b *testing.B, run func()) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	from := processor(b)
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64((processor(b)-from).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(max(0, float64(after.HeapAlloc)-float64(before.HeapAlloc))/(1<<20), "MiB-held")
}

// benchmarkSpaces measures searches for 20 hits among n vectors of one owner, beside a plain read of the file.
func benchmarkSpaces(b *testing.B, n int) {
	rows, path, query := stocked(b, n)
	filter := knn.Filter{Scopes: []string{benchScope}}
	search := func(b *testing.B, all knn.Spaces) {
		b.Helper()
		space, err := all.Space(benchKind)
		check(b, err)
		if hits, err := space.Search(b.Context(), filter, query, 20); err != nil || len(hits) != 20 {
			b.Fatalf("%d hits (%v)", len(hits), err)
		}
	}
	b.Run("plain read", func(b *testing.B) {
		buffer := make([]byte, 1<<20)
		measured(b, func() {
			in, err := os.Open(path)
			check(b, err)
			for err == nil {
				_, err = in.Read(buffer)
			}
			check(b, in.Close())
		})
	})
	b.Run("first", func(b *testing.B) { measured(b, func() { search(b, spaces(b, rows, 0)) }) })
	for _, way := range []struct {
		name   string
		memory int64
	}{{"again", 0}, {"as numbers", 1 << 30}, {"streamed", 1}} {
		b.Run(way.name, func(b *testing.B) {
			all := spaces(b, rows, way.memory)
			search(b, all)
			measured(b, func() { search(b, all) })
		})
	}
}

func BenchmarkSpaces10000(b *testing.B)  { benchmarkSpaces(b, 10_000) }
func BenchmarkSpaces100000(b *testing.B) { benchmarkSpaces(b, 100_000) }

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
