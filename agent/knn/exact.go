package knn

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Unit returns a copy of length 1, or zeros if the vector has no direction (all zero, or not finite).
func Unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	u := make([]float32, len(v))
	if length := math.Sqrt(sum); length > 0 && !math.IsInf(length, 0) && !math.IsNaN(length) {
		for i, x := range v {
			u[i] = float32(float64(x) / length)
		}
	}
	return u
}

// Dot multiplies two vectors of the same length, which is the cosine of their angle if both have length 1. It adds in
// eight lanes, which the processor can compute in parallel: about 0.4 ns a number.
func Dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + (s4 + s5 + s6 + s7)
}

// SortHits puts the most similar first, and those that are equally similar in the order of their names.
func SortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
}

// Top keeps the best of many candidates, so that a search needs memory for its limit only. The zero value keeps none.
// Not safe for concurrent use.
type Top[T any] struct {
	Limit int
	kept  candidates[T]
	added int
}

// Candidate is something with a score.
type Candidate[T any] struct {
	Score float32
	What  T
	at    int // the place among all that were added
}

// Add offers a candidate. Of those that are equally similar, the ones that came first are kept, whatever else comes. A
// score that is not a number, that of a damaged vector, is not kept.
func (t *Top[T]) Add(score float32, what T) {
	if !t.Wants(score) {
		return
	}
	t.added++
	c := Candidate[T]{score, what, t.added}
	if len(t.kept) < t.Limit {
		heap.Push(&t.kept, c)
		return
	}
	t.kept[0] = c
	heap.Fix(&t.kept, 0)
}

// Wants reports whether a candidate of this score would be kept.
func (t *Top[T]) Wants(score float32) bool {
	number := score == score //nolint:gocritic // NaN is not
	return number && len(t.kept) < t.Limit || len(t.kept) > 0 && score > t.kept[0].Score
}

// Floor is the score that a candidate must exceed to be kept.
func (t *Top[T]) Floor() float32 {
	if len(t.kept) < t.Limit || t.Limit <= 0 {
		return float32(math.Inf(-1))
	}
	return t.kept[0].Score
}

// Best returns what was kept, the best first.
func (t *Top[T]) Best() []Candidate[T] {
	best := slices.Clone([]Candidate[T](t.kept))
	slices.SortFunc(best, func(a, b Candidate[T]) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.at, b.at))
	})
	return best
}

// candidates is a heap with the worst on top.
type candidates[T any] []Candidate[T]

func (c candidates[T]) Len() int { return len(c) }
func (c candidates[T]) Less(i, j int) bool {
	return c[i].Score < c[j].Score || c[i].Score == c[j].Score && c[i].at > c[j].at
}
func (c candidates[T]) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *candidates[T]) Push(x any) { *c = append(*c, x.(Candidate[T])) } //nolint:forcetypeassert // only Add pushes

// Pop implements heap.Interface.
func (c *candidates[T]) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
