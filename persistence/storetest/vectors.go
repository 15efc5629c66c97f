package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/agent/knn"
)

// Vectors runs the suite of knn.Index. open returns an empty index that lives as long as its test.
func Vectors(t *testing.T, open func(t *testing.T) knn.Index) {
	t.Helper()
	for name, test := range map[string]func(*vectors){
		"an empty index answers":                  anEmptyIndexAnswers,
		"the most similar come first":             theMostSimilarComeFirst,
		"a limit bounds the hits":                 aLimitBoundsTheHits,
		"a point is replaced":                     aPointIsReplaced,
		"a point is removed":                      aPointIsRemoved,
		"another length replaces the old":         anotherLengthReplacesTheOld,
		"without a direction nothing is similar":  withoutADirectionNothingIsSimilar,
		"the length of a vector does not count":   theLengthOfAVectorDoesNotCount,
		"keys and payloads are any text":          keysAndPayloadsAreAnyText,
		"nothing that was given is kept or lent":  nothingThatWasGivenIsKeptOrLent,
		"a thousand points are all there":         aThousandPointsAreAllThere,
		"an index is used from many sides":        anIndexIsUsedFromManySides,
		"points of the same key: the last counts": pointsOfTheSameKeyTheLastCounts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&vectors{T: t, Index: open(t)})
		})
	}
}

// vectors is one test with its index.
type vectors struct {
	*testing.T
	knn.Index
}

func tool(key string, vector ...float32) knn.Point {
	return knn.Point{Key: key, Hash: "hash of " + key, Vector: vector, Payload: map[string]string{
		"key": key, "server_id": "s", "tool_name": strings.TrimPrefix(key, "s:"), "description": "does " + key,
	}}
}

// random returns n points of a length, the same for the same seed.
func random(seed uint64, n, size int) []knn.Point {
	r := rand.New(rand.NewPCG(seed, 0))
	points := make([]knn.Point, n)
	for i := range points {
		points[i] = tool(fmt.Sprintf("s:t%05d", i), make([]float32, size)...)
		for j := range size {
			points[i].Vector[j] = float32(r.NormFloat64())
		}
	}
	return points
}

func (v *vectors) put(points ...knn.Point) {
	v.Helper()
	if err := v.Upsert(v.Context(), points); err != nil {
		v.Fatal(err)
	}
}

func (v *vectors) find(limit int, vector ...float32) []knn.Hit {
	v.Helper()
	hits, err := v.Search(v.Context(), vector, limit)
	if err != nil {
		v.Fatal(err)
	}
	return hits
}

// holds requires exactly these keys, with the hashes that tool assigns.
func (v *vectors) holds(keys ...string) {
	v.Helper()
	want := map[string]string{}
	for _, key := range keys {
		want[key] = "hash of " + key
	}
	v.hashes(want)
}

func (v *vectors) hashes(want map[string]string) {
	v.Helper()
	got, err := v.Hashes(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		v.Errorf("hashes (-want +got):\n%s", diff)
	}
}

// hits requires these hits, with scores within the precision of float32.
func (v *vectors) hits(what string, got []knn.Hit, want ...knn.Hit) {
	v.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		v.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func keysOf(hits []knn.Hit) []string {
	keys := []string{}
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	slices.Sort(keys)
	return keys
}

func anEmptyIndexAnswers(v *vectors) {
	v.holds()
	v.hits("search", v.find(5, 1, 0))
	if err := v.Delete(v.Context(), []string{"s:a"}); err != nil {
		v.Errorf("delete: %v", err)
	}
	if err := v.Delete(v.Context(), nil); err != nil {
		v.Errorf("delete nothing: %v", err)
	}
	v.put()
	v.holds()
}

// reference computes the cosine in float64, by definition.
func reference(points []knn.Point, query []float32) []knn.Hit {
	var hits []knn.Hit
	for _, p := range points {
		var dot, a, b float64
		for i, x := range p.Vector {
			dot, a, b = dot+float64(x)*float64(query[i]), a+float64(x)*float64(x), b+float64(query[i])*float64(query[i])
		}
		hits = append(hits, knn.Hit{Key: p.Key, Score: float32(dot / math.Sqrt(a*b))})
	}
	slices.SortFunc(hits, func(a, b knn.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits
}

func theMostSimilarComeFirst(v *vectors) {
	v.put(tool("s:east", 1, 0), tool("s:north", 0, 2), tool("s:west", -3, 0), tool("s:northeast", 1, 1))
	v.hits("known directions", v.find(9, 5, 0), knn.Hit{Key: "s:east", Score: 1},
		knn.Hit{Key: "s:northeast", Score: float32(math.Sqrt(0.5))}, knn.Hit{
			Key: "s:north",
		}, knn.Hit{Key: "s:west", Score: -1})

	points := random(1, 150, 32)
	v.put(points...)
	for _, query := range random(2, 5, 32) {
		want := reference(points, query.Vector)
		got := v.find(len(points), query.Vector...)
		if len(got) != len(want) {
			v.Fatalf("%d hits, want %d", len(got), len(want))
		}
		score := map[string]float32{}
		for _, h := range want {
			score[h.Key] = h.Score
		}
		for i, h := range got { // neighbours that are equal but for rounding can be in any order
			if math.Abs(float64(h.Score-score[h.Key])) > 1e-5 || math.Abs(float64(h.Score-want[i].Score)) > 1e-5 {
				v.Fatalf("hit %d is %v, whose cosine is %v; want %v", i, h, score[h.Key], want[i])
			}
			if i > 0 && h.Score > got[i-1].Score {
				v.Fatalf("hit %d is more similar than the one before", i)
			}
		}
	}
}

func aLimitBoundsTheHits(v *vectors) {
	v.put(tool("s:a", 1, 0), tool("s:b", 0.9, 0.1), tool("s:c", 0, 1))
	for _, test := range []struct {
		limit int
		want  []string
	}{
		{-1, []string{}},
		{0, []string{}},
		{1, []string{"s:a"}},
		{2, []string{"s:a", "s:b"}},
		{3, []string{"s:a", "s:b", "s:c"}},
		{50, []string{"s:a", "s:b", "s:c"}},
	} {
		if got := keysOf(v.find(test.limit, 1, 0)); !slices.Equal(got, test.want) {
			v.Errorf("limit %d: %v, want %v", test.limit, got, test.want)
		}
	}
	v.hits("an empty vector", v.find(5))
}

func aPointIsReplaced(v *vectors) {
	v.put(tool("s:a", 1, 0), tool("s:b", -1, 3))
	changed := tool("s:a", 0, 1)
	changed.Hash, changed.Payload = "another", nil
	v.put(changed)
	v.hashes(map[string]string{"s:a": "another", "s:b": "hash of s:b"})
	v.hits("after the change", v.find(1, 0, 1), knn.Hit{Key: "s:a", Score: 1})
	v.hits("in the old direction", v.find(9, 1, 0), knn.Hit{Key: "s:a"}, knn.Hit{
		Key:   "s:b",
		Score: float32(-1 / math.Sqrt(10)),
	})
}

func aPointIsRemoved(v *vectors) {
	v.put(tool("s:a", 1, 0), tool("s:b", 0, 1), tool("s:c", 1, 1))
	for _, step := range []struct {
		remove []string
		left   []string
	}{
		{[]string{"s:unknown", "s", "S:A", ""}, []string{"s:a", "s:b", "s:c"}},
		{[]string{"s:b", "s:unknown", "s:b"}, []string{"s:a", "s:c"}},
		{[]string{"s:b"}, []string{"s:a", "s:c"}},
		{[]string{"s:a", "s:c"}, nil},
	} {
		if err := v.Delete(v.Context(), step.remove); err != nil {
			v.Fatal(err)
		}
		v.holds(step.left...)
		if got := keysOf(v.find(9, 1, 0)); !slices.Equal(got, append([]string{}, step.left...)) {
			v.Errorf("after %q was removed, found %v, want %v", step.remove, got, step.left)
		}
	}
	v.put(tool("s:b", 0, 1))
	v.holds("s:b")
}

// anotherLengthReplacesTheOld is what happens when the model changes. An index may delete the points of the old length
// or skip them.
func anotherLengthReplacesTheOld(v *vectors) {
	v.put(tool("s:a", 1, 0), tool("s:b", 0, 1), tool("s:c", 1, 1))
	v.hits("a query of another length", v.find(9, 1, 0, 0, 0))
	v.holds("s:a", "s:b", "s:c") // a search changes nothing
	v.put(tool("s:a", 0, 0, 0, 1))
	v.hits("one of the new length", v.find(9, 0, 0, 0, 2), knn.Hit{Key: "s:a", Score: 1})
	if got := keysOf(v.find(9, 1, 0)); slices.Contains(got, "s:a") {
		v.Errorf("found by the old length: %v", got)
	}
	v.put(tool("s:b", 0, 0, 1, 0), tool("s:c", 0, 0, 1, 1))
	v.holds("s:a", "s:b", "s:c")
	if got := keysOf(v.find(9, 0, 0, 0, 1)); !slices.Equal(got, []string{"s:a", "s:b", "s:c"}) {
		v.Errorf("by the new length: %v", got)
	}
	v.hits("by the old length", v.find(9, 1, 0))
	v.put(tool("s:a", 1, 0), tool("s:b", 0, 1), tool("s:c", 1, 1)) // and back
	v.hits("back", v.find(1, 1, 0), knn.Hit{Key: "s:a", Score: 1})
	v.holds("s:a", "s:b", "s:c")
}

func withoutADirectionNothingIsSimilar(v *vectors) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	v.put(tool("s:a", 1, 0), tool("s:zero", 0, 0), tool("s:nan", nan, 1), tool("s:inf", inf, -inf))
	v.hits("among those with a direction", v.find(9, 1, 0), knn.Hit{Key: "s:a", Score: 1}, knn.Hit{
		Key: "s:inf",
	}, knn.Hit{Key: "s:nan"},
		knn.Hit{Key: "s:zero"})
	v.holds("s:a", "s:inf", "s:nan", "s:zero")
	for _, query := range [][]float32{{0, 0}, {nan, 0}, {inf, 1}} {
		for _, h := range v.find(9, query...) {
			if h.Score != 0 {
				v.Errorf("query %v: %v", query, h)
			}
		}
	}
}

func theLengthOfAVectorDoesNotCount(v *vectors) {
	v.put(tool("s:long", 3e30, 4e30), tool("s:short", 4e-30, -3e-30), tool("s:one", 1, 0))
	v.hits("a long query", v.find(9, 2e35, 0), knn.Hit{Key: "s:one", Score: 1}, knn.Hit{Key: "s:short", Score: 0.8},
		knn.Hit{Key: "s:long", Score: 0.6})
	v.hits("a short query", v.find(1, 0, 1e-35), knn.Hit{Key: "s:long", Score: 0.8})
}

func keysAndPayloadsAreAnyText(v *vectors) {
	keys := []string{
		"", "bare", "s:a/b\\c", "s:'; DROP TABLE vector_point; --", "s:\"%_*?", "s:Ä",
		"s:ä", "s:a\u0308", "s:\n\t", "s:" + strings.Repeat("long", 300), "😀:🏘",
	}
	var points []knn.Point
	for i, key := range keys {
		p := tool(key, 1, float32(i))
		p.Payload["hash"], p.Payload["key"], p.Payload["\xff"] = "not the hash", "not the key", "no \xff UTF-8 \x00"
		points = append(points, p)
	}
	v.put(points...)
	v.holds(keys...)
	slices.Sort(keys)
	if got := keysOf(v.find(len(keys), 1, 0)); !slices.Equal(got, keys) {
		v.Errorf("found %q, want %q", got, keys)
	}
	if err := v.Delete(v.Context(), keys[1:]); err != nil {
		v.Fatal(err)
	}
	v.holds(keys[0])
}

func nothingThatWasGivenIsKeptOrLent(v *vectors) {
	points := []knn.Point{tool("s:a", 1, 0), tool("s:b", 0, 1)}
	vector := points[0].Vector
	v.put(points...)
	vector[0], vector[1] = 0, 7
	points[0].Key, points[1].Payload["key"] = "s:changed", "s:changed"
	hashes, err := v.Hashes(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	clear(hashes)
	v.holds("s:a", "s:b")
	query := []float32{1, 0}
	hits := v.find(1, query...)
	v.hits("after the change", hits, knn.Hit{Key: "s:a", Score: 1})
	hits[0].Key = "s:changed"
	if query[0] != 1 || query[1] != 0 {
		v.Errorf("the query became %v", query)
	}
	v.hits("again", v.find(1, query...), knn.Hit{Key: "s:a", Score: 1})
}

func aThousandPointsAreAllThere(v *vectors) {
	points := random(3, 1100, 4)
	v.put(points...)
	var keys []string
	for _, p := range points {
		keys = append(keys, p.Key)
	}
	v.holds(keys...)
	if got := keysOf(v.find(len(keys), points[7].Vector...)); !slices.Equal(got, keys) {
		v.Errorf("found %d of %d", len(got), len(keys))
	}
	v.hits("one of them", v.find(1, points[7].Vector...), knn.Hit{Key: points[7].Key, Score: 1})
	if err := v.Delete(v.Context(), keys[:1050]); err != nil {
		v.Fatal(err)
	}
	v.holds(keys[1050:]...)
}

func anIndexIsUsedFromManySides(v *vectors) {
	const sides = 8
	var wg sync.WaitGroup
	var want []string
	for n := range sides {
		want = append(want, fmt.Sprintf("s:kept%d", n))
		wg.Go(func() {
			kept, gone := fmt.Sprintf("s:kept%d", n), fmt.Sprintf("s:gone%d", n)
			for step, err := range []error{
				v.Upsert(v.Context(), []knn.Point{tool(kept, 1, float32(n)), tool(gone, 0, 1), tool("s:shared", 1, 1)}),
				v.Delete(v.Context(), []string{gone}),
			} {
				if err != nil {
					v.Errorf("step %d: %v", step, err)
				}
			}
			hits, err := v.Search(v.Context(), []float32{1, float32(n)}, 4*sides)
			if keys := keysOf(hits); err != nil || !slices.Contains(keys, kept) || slices.Contains(keys, gone) {
				v.Errorf("side %d found %v (%v)", n, keys, err)
			}
			if hashes, err := v.Hashes(v.Context()); err != nil || hashes[kept] != "hash of "+kept {
				v.Errorf("side %d: hashes %v (%v)", n, hashes, err)
			}
		})
	}
	wg.Wait()
	v.holds(append(want, "s:shared")...)
}

func pointsOfTheSameKeyTheLastCounts(v *vectors) {
	first, last := tool("s:a", 1, 0), tool("s:a", 0, 1)
	first.Hash = "the first"
	v.put(first, tool("s:b", 1, 1), last)
	v.holds("s:a", "s:b")
	v.hits("the last", v.find(1, 0, 1), knn.Hit{Key: "s:a", Score: 1})
}
