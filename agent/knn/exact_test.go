package knn_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/agent/knn"
)

func TestDot(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 7, 8, 9, 31, 64, 100, 512, 1537} {
		a, b := make([]float32, n), make([]float32, n)
		var want float64
		for i := range a {
			a[i], b[i] = r.Float32()-0.5, r.Float32()-0.5
			want += float64(a[i]) * float64(b[i])
		}
		if got := knn.Dot(a, b); math.Abs(float64(got)-want) > 1e-4 {
			t.Errorf("%d numbers: %v, want %v", n, got, want)
		}
	}
}

func TestTop(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for _, limit := range []int{0, 1, 5, 100, 1000} {
		top := knn.Top[int]{Limit: limit}
		var all []float32
		for i := range 300 {
			score := r.Float32()
			all = append(all, score)
			top.Add(score, i)
		}
		slices.Sort(all)
		slices.Reverse(all)
		var got []float32
		for _, c := range top.Best() {
			got = append(got, c.Score)
		}
		if !slices.Equal(got, all[:min(limit, len(all))]) {
			t.Errorf("limit %d: %d kept", limit, len(got))
		}
	}
}

// TestTopKeepsWhatCameFirst: of equals the first are kept, also if something better comes between them.
func TestTopKeepsWhatCameFirst(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 3))
	for range 200 {
		top := knn.Top[int]{Limit: 1 + r.IntN(9)}
		type one struct {
			score float32
			at    int
		}
		var all []one
		for i := range 40 {
			score := float32(r.IntN(5))
			if score == 4 {
				score = float32(math.NaN())
			} else {
				all = append(all, one{score, i})
			}
			top.Add(score, i)
		}
		slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(b.score, a.score) })
		for i, c := range top.Best() {
			if c.Score != all[i].score || c.What != all[i].at {
				t.Fatalf("%d is %v, want %v", i, c, all[i])
			}
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	for _, kind := range []knn.Kind{{Name: "code", Model: "a|b|c", Size: 3}, {Name: "x-y_Z0", Model: "|", Size: 65536}} {
		if got, err := knn.ParseKind(kind.String()); err != nil || got != kind {
			t.Errorf("%q became %+v, %v", kind, got, err)
		}
	}
	for _, text := range []string{"", "code", "code|3", "code|x|m", "code|0|m", "|3|m", "co/de|3|m", "code|3|"} {
		if kind, err := knn.ParseKind(text); err == nil {
			t.Errorf("%q is %+v", text, kind)
		}
	}
}

// BenchmarkDot measures the comparison with vectors in one block of memory.
func BenchmarkDot(b *testing.B) {
	for _, size := range []int{512, 1536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const many = 1000
			block, query := make([]float32, many*size), make([]float32, size)
			for i := range block {
				block[i] = float32(i % 7)
			}
			var sum float32
			for b.Loop() {
				for i := range many {
					sum += knn.Dot(query, block[i*size:(i+1)*size])
				}
			}
			_ = sum
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/vector")
		})
	}
}
