package knn

import "math"

// A code is a vector in a quarter of its memory: one byte for each number, a scale, and how far it may be from the
// vector. The similarity of two vectors is known from it up to a bound that is proven, not estimated, so that a search
// can rule out most vectors with codes only and still be exact.

// Code is what is known about a vector of length 1 (or 0) beside its bytes.
type Code struct {
	Scale float32 // of the bytes
	Away  float32 // at least the length of the difference between the vector and its code
}

// queryTop is the largest number of a Query: products with a byte are added in 64 bits without overflow.
const queryTop = 8191

// Encode writes the code of a vector of length 1 or 0 to as many bytes.
func Encode(into []int8, vector []float32) Code {
	var most uint32 // without their sign, numbers are ordered as their bits are
	for _, x := range vector {
		most = max(most, math.Float32bits(x)&^(1<<31))
	}
	scale := math.Float32frombits(most) / 127
	if scale == 0 {
		clear(into[:len(vector)])
		return Code{Away: roundUp(math.Sqrt(float64(len(vector))) * float64(math.Float32frombits(most)))}
	}
	inverse, wide := 1/scale, float64(scale)
	into = into[:len(vector)]
	var sum float64
	for i, x := range vector {
		n := int8(math.Float32bits(x*inverse+rounder) - rounderBits) //nolint:gosec // what differs from x counts in sum
		into[i] = n
		rest := float64(x) - float64(n)*wide
		sum += rest * rest
	}
	return Code{Scale: scale, Away: roundUp(math.Sqrt(sum) * (1 + 1e-9))}
}

// rounder added to a small number leaves its nearest integer in the last bits.
const rounder, rounderBits = 1.5 * (1 << 23), 0x4B400000

// roundUp returns the next float32 that is not less.
func roundUp(x float64) float32 {
	return math.Nextafter32(float32(x), float32(math.Inf(1)))
}

// Query is a vector of length 1 (or 0) that is compared with codes.
type Query struct {
	numbers []int64
	scale   float64
	away    float64 // at least the length of the difference between the vector and its numbers
	slack   float64 // for the rounding of Dot
}

// NewQuery prepares a vector of length 1 or 0.
func NewQuery(vector []float32) *Query {
	q := &Query{numbers: make([]int64, len(vector))}
	// Dot adds size/8 products in each of eight lanes, a rest of at most 7, and the lanes. Each operation rounds by at
	// most 2^-24 of a sum that is at most the product of the two lengths.
	q.slack = float64(len(vector)/8+24) * 0x1p-24 * 1.1
	var most float32
	for _, x := range vector {
		most = max(most, x, -x)
	}
	if most == 0 {
		return q
	}
	q.scale = float64(most) / queryTop
	var sum float64
	for i, x := range vector {
		n := math.Round(float64(x) / q.scale)
		q.numbers[i] = int64(n)
		rest := float64(x) - n*q.scale
		sum += rest * rest
	}
	q.away = math.Sqrt(sum) * (1 + 1e-9)
	return q
}

// Bounds returns two numbers between which Dot of the query and the vector of a code is.
func (q *Query) Bounds(bytes []int8, code Code) (low, high float32) {
	middle := float64(dotCode(q.numbers, bytes)) * q.scale * float64(code.Scale)
	away := float64(code.Away)
	// q·v − q'·v' = q·(v−v') + (q−q')·v', and Unit makes lengths of 1 up to a rounding.
	width := 1.0001*away + q.away*(1.0001+away) + q.slack
	return -roundUp(width - middle), roundUp(middle + width)
}

// dotCode adds in four lanes, which the processor can compute in parallel.
func dotCode(a []int64, b []int8) int64 {
	var s0, s1, s2, s3 int64
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]int64)(a), (*[8]int8)(b)
		s0 += x[0]*int64(y[0]) + x[4]*int64(y[4])
		s1 += x[1]*int64(y[1]) + x[5]*int64(y[5])
		s2 += x[2]*int64(y[2]) + x[6]*int64(y[6])
		s3 += x[3]*int64(y[3]) + x[7]*int64(y[7])
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * int64(b[i])
	}
	return s0 + s1 + s2 + s3
}
