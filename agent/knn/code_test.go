package knn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/agent/knn"
)

// shapes are vectors that round badly, and ordinary ones.
func shapes(r *rand.Rand, size int) [][]float32 {
	ordinary, spike, ramp, tiny, even, huge := make([]float32, size), make([]float32, size), make([]float32, size),
		make([]float32, size), make([]float32, size), make([]float32, size)
	for i := range size {
		ordinary[i] = float32(r.NormFloat64())
		spike[i] = r.Float32() * 1e-4
		ramp[i] = float32(i) - float32(size)/2
		tiny[i] = 1e-38 * r.Float32()
		even[i] = 1
		huge[i] = 1e38 * (r.Float32() - 0.5)
	}
	spike[r.IntN(size)] = 1
	return [][]float32{ordinary, spike, ramp, tiny, even, huge, make([]float32, size)}
}

// TestBoundsHold: the similarity that a search computes is always between the bounds of the codes.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for _, size := range []int{1, 7, 8, 100, 512, 1536} {
		var units [][]float32
		for range 2 {
			for _, v := range shapes(r, size) {
				unit := knn.Unit(v)
				opposite := make([]float32, size)
				for i, x := range unit {
					opposite[i] = -x
				}
				units = append(units, unit, opposite)
			}
		}
		widest := float32(0)
		for _, q := range units {
			query := knn.NewQuery(q)
			for _, v := range units {
				bytes := make([]int8, size)
				low, high := query.Bounds(bytes, knn.Encode(bytes, v))
				if score := knn.Dot(q, v); score < low || score > high || math.IsNaN(float64(low+high)) {
					t.Fatalf("%d numbers: %v is not between %v and %v", size, score, low, high)
				}
				widest = max(widest, high-low)
			}
		}
		if widest > 0.6 {
			t.Errorf("%d numbers: the bounds are %v apart", size, widest)
		}
	}
}

func BenchmarkBounds(b *testing.B) {
	for _, size := range []int{512, 1536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const many = 1000
			block, vector := make([]int8, many*size), make([]float32, size)
			for i := range block {
				block[i] = int8(i % 7)
			}
			vector[0] = 1
			query := knn.NewQuery(vector)
			var sum float32
			for b.Loop() {
				for i := range many {
					_, high := query.Bounds(block[i*size:(i+1)*size], knn.Code{Scale: 0.01, Away: 0.01})
					sum += high
				}
			}
			_ = sum
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/vector")
		})
	}
}

func TestDecodeReversesEncode(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	for size := range 40 {
		v, got := make([]float32, size), make([]float32, size)
		for i := range v {
			v[i] = r.Float32()
		}
		if knn.DecodeVector(got, append(knn.EncodeVector(v), 1, 2, 3, 4)); !slices.Equal(got, v) {
			t.Errorf("%v became %v", v, got)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	v, data := make([]float32, 512), make([]byte, 2048)
	for b.Loop() {
		knn.DecodeVector(v, data)
	}
}
