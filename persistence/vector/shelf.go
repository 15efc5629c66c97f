package vector

import (
	"context"
	"slices"

	"github.com/zephbot/zephbot/agent/knn"
)

// packVectors is the number of vectors in one piece of memory.
const packVectors = 512

// shelf is a copy of the vectors of one scope. It does not change once it is kept. The copy of a small scope has the
// numbers; that of a larger one has codes, a quarter of them, which leave a few candidates to be read. Its field below
// the line is guarded by exact.mu.
type shelf struct {
	version int64
	ids     []int64
	packs   []pack // of packVectors vectors each, except the last
	coded   bool
	size    int64 // bytes
	large   bool  // it did not fit into the limit: the vectors are read for each search

	used uint64
}

// pack is a piece of a shelf: numbers, or codes.
type pack struct {
	numbers []float32
	bytes   []int8
	codes   []knn.Code
}

// Bytes of memory for a vector beside its numbers or bytes: the id, and the rest of a code.
const idSize, codeSize = 8, 8

// addVector appends a vector. It begins to use codes when the numbers take more than a quarter of limit, and returns
// false when the codes take more than all of it.
func (c *shelf) addVector(id int64, vector []float32, limit int64) bool {
	if !c.coded && c.size+int64(4*len(vector)+idSize) > limit/4 {
		c.encodePacks(len(vector))
	}
	c.ids = append(c.ids, id)
	last := c.lastPack(len(vector))
	if c.coded {
		last.appendCode(vector)
		c.size += int64(len(vector) + codeSize + idSize)
	} else {
		last.numbers = append(last.numbers, vector...)
		c.size += int64(4*len(vector) + idSize)
	}
	return c.size <= limit
}

// lastPack returns the pack for the next vector. Many scopes have a few vectors only, so that the first one grows.
func (c *shelf) lastPack(size int) *pack {
	if n := len(c.packs); n > 0 && (len(c.ids)-1)%packVectors != 0 {
		return &c.packs[n-1]
	}
	c.packs = append(c.packs, pack{})
	last := &c.packs[len(c.packs)-1]
	if len(c.packs) > 1 {
		if c.coded {
			last.bytes, last.codes = make([]int8, 0, packVectors*size), make([]knn.Code, 0, packVectors)
		} else {
			last.numbers = make([]float32, 0, packVectors*size)
		}
	}
	return last
}

// appendCode appends a code.
func (p *pack) appendCode(vector []float32) {
	n := len(p.bytes)
	p.bytes = slices.Grow(p.bytes, len(vector))[:n+len(vector)]
	p.codes = append(p.codes, knn.Encode(p.bytes[n:], vector))
}

// encodePacks replaces the numbers by codes, pack by pack.
func (c *shelf) encodePacks(size int) {
	c.coded, c.size = true, 0
	for i := range c.packs {
		old := c.packs[i].numbers
		count := len(old) / size
		c.packs[i] = pack{bytes: make([]int8, 0, packVectors*size), codes: make([]knn.Code, 0, packVectors)}
		for ; len(old) > 0; old = old[size:] {
			c.packs[i].appendCode(old[:size])
		}
		c.size += int64(count * (size + codeSize + idSize))
	}
}

// compareAll offers the vectors of a copy that has the numbers.
func (c *shelf) compareAll(ctx context.Context, scope string, query []float32, top *knn.Top[pointPlace]) error {
	size := len(query)
	for i := range c.packs {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids := c.ids[i*packVectors:]
		rest := c.packs[i].numbers
		for n := 0; len(rest) >= size; n++ {
			if score := knn.Dot(query, rest[:size]); top.Wants(score) {
				top.Add(score, pointPlace{scope, ids[n]})
			}
			rest = rest[size:]
		}
	}
	return nil
}

// findCandidates returns the ids, ascending, of the vectors that may be among the best; the others cannot be. The copy
// has codes. Of limit vectors at least, the lower bound is the threshold or more: what stays below it is not among the
// best, however equal similarities are ordered.
func (c *shelf) findCandidates(ctx context.Context, query []float32, limit int, floor float32) ([]int64, error) {
	prepared, size := knn.NewQuery(query), len(query)
	highs := make([]float32, 0, len(c.ids))
	lows := &knn.Top[struct{}]{Limit: limit}
	for i := range c.packs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rest := c.packs[i].bytes
		for _, code := range c.packs[i].codes {
			low, high := prepared.Bounds(rest[:size], code)
			highs = append(highs, high)
			if lows.Wants(low) {
				lows.Add(low, struct{}{})
			}
			rest = rest[size:]
		}
	}
	threshold := max(floor, lows.Floor())
	var ids []int64
	for i, high := range highs {
		if high >= threshold || high != high { // of a damaged vector nothing is known
			ids = append(ids, c.ids[i])
		}
	}
	return ids, nil
}
