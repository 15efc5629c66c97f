package vector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/sql/points"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/persistence/vector"
)

// file opens a file of vectors.
func file(t testing.TB, path string) *points.File {
	t.Helper()
	f := points.New(path, zerolog.Nop())
	t.Cleanup(func() { check(t, f.Close()) })
	return f
}

// spaces opens an embedded store over a file with a limit of its memory in bytes; 0 = the default.
func spaces(t testing.TB, rows knn.Rows, memory int64) knn.Spaces {
	t.Helper()
	store, err := vector.Open(vector.Options{Points: database(t, filepath.Join(t.TempDir(), "zephbot.db")), Rows: rows, Memory: memory, Log: zerolog.Nop()})
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	return store.Spaces()
}

func TestSpacesInMemory(t *testing.T) {
	t.Parallel()
	storetest.Spaces(t, func(*testing.T) knn.Spaces { return knn.NewSpaces() })
}

func TestSpacesInAFile(t *testing.T) {
	t.Parallel()
	storetest.Spaces(t, func(t *testing.T) knn.Spaces { return spaces(t, file(t, filepath.Join(t.TempDir(), "v.db")), 0) })
}

func TestSpacesThatDoNotFitIntoMemory(t *testing.T) {
	t.Parallel()
	storetest.Spaces(t, func(t *testing.T) knn.Spaces { return spaces(t, file(t, filepath.Join(t.TempDir(), "v.db")), 1) })
}

func TestSpacesAsCodes(t *testing.T) {
	t.Parallel()
	const limit = 40_000 // the larger scopes of the suite do not fit as numbers
	storetest.Spaces(t, func(t *testing.T) knn.Spaces { return spaces(t, file(t, filepath.Join(t.TempDir(), "v.db")), limit) })
}

// crowd returns points that are alike, and some that are the same, so that bounds overlap and similarities are equal.
func crowd(r *rand.Rand, n, size int) []knn.Point {
	points := make([]knn.Point, n)
	for i := range points {
		points[i] = knn.Point{Scope: fmt.Sprint(i % 2), Key: fmt.Sprint(i), Vector: make([]float32, size)}
		switch {
		case i%100 == 7: // without direction
		case i > 10 && i%10 == 3:
			copy(points[i].Vector, points[i-10].Vector)
		default:
			for j := range size {
				points[i].Vector[j] = float32(r.NormFloat64()) + float32(4*(i%3))
			}
		}
	}
	return points
}

// TestCodesFindWhatReadingFinds: a search in codes and one that reads all vectors have the same hits in the same order.
func TestCodesFindWhatReadingFinds(t *testing.T) {
	t.Parallel()
	const size = 24
	r := rand.New(rand.NewPCG(9, 9))
	rows := file(t, filepath.Join(t.TempDir(), "v.db"))
	coding, kind := spaces(t, rows, 20_000), knn.Kind{Name: "code", Model: "m", Size: size}
	codes, err := coding.Space(kind)
	check(t, err)
	read, err := spaces(t, rows, 1).Space(kind)
	check(t, err)
	points := crowd(r, 300, size)
	for change := range 2 {
		check(t, codes.Upsert(t.Context(), points))
		for _, limit := range []int{1, 7, 400} {
			for _, query := range crowd(r, 2, size) {
				for _, scopes := range [][]string{{"1"}, {"0", "1"}} {
					filter := knn.Filter{Scopes: scopes}
					want, err := read.Search(t.Context(), filter, query.Vector, limit)
					check(t, err)
					got, err := codes.Search(t.Context(), filter, query.Vector, limit)
					check(t, err)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("change %d, limit %d, scopes %v (-read +codes):\n%s", change, limit, scopes, diff)
					}
				}
			}
		}
		points = crowd(r, 50, size)
	}
	if n := vector.Coded(coding); n != 2 {
		t.Errorf("%d copies have codes, want 2", n)
	}
}

// TestADamagedVectorHidesNoOther: what the disk has done to one must not cost the others.
func TestADamagedVectorHidesNoOther(t *testing.T) {
	t.Parallel()
	rows, kind := file(t, filepath.Join(t.TempDir(), "v.db")), knn.Kind{Name: "code", Model: "m", Size: 8}
	batch := []knn.Row{{Scope: "a", Key: "short", Vector: []byte{1, 2, 3}}}
	for i, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), 1e38} {
		batch = append(batch, knn.Row{Scope: "a", Key: fmt.Sprint("odd", i), Vector: knn.EncodeVector([]float32{x, 0, 0, 0, 0, 0, 0, x})})
	}
	for i := range 200 {
		batch = append(batch, knn.Row{Scope: "a", Key: fmt.Sprint(i), Vector: knn.EncodeVector(knn.Unit([]float32{float32(i), 1, 1, 1, 1, 1, 1, 1}))})
	}
	check(t, rows.Store(t.Context(), kind, batch))
	space, err := spaces(t, rows, 10_000).Space(kind)
	check(t, err)
	for range 2 { // from the file, and from codes
		hits, err := space.Search(t.Context(), knn.Filter{Scopes: []string{"a"}}, []float32{1, 0, 0, 0, 0, 0, 0, 0}, 10)
		if check(t, err); !slices.ContainsFunc(hits, func(h knn.Hit) bool { return h.Key == "199" }) {
			t.Errorf("found %v", hits)
		}
	}
}

func TestSpacesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "v.db")
	kind := knn.Kind{Name: "code", Model: "m", Size: 2}
	first := points.New(path, zerolog.Nop())
	space, err := spaces(t, first, 0).Space(kind)
	check(t, err)
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "1", Hash: "h", Vector: []float32{1, 0}}}))
	check(t, first.Close())
	space, err = spaces(t, file(t, path), 0).Space(kind)
	check(t, err)
	hits, err := space.Search(t.Context(), knn.Filter{Scopes: []string{"a"}}, []float32{1, 0}, 5)
	if check(t, err); len(hits) != 1 || hits[0].Score != 1 {
		t.Errorf("found %v", hits)
	}
}

// TestTheMemoryOfCopiesIsBounded: searches in many scopes find everything, whatever fits.
func TestTheMemoryOfCopiesIsBounded(t *testing.T) {
	t.Parallel()
	const vectors, size = 550, 8
	for name, limit := range map[string]int64{
		"two scopes as numbers":  4 * vectors * (4*size + 8),
		"two scopes as codes":    5 * vectors * (size + 16) / 2,
		"not one scope as codes": vectors*(size+16) - 1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounded(t, vectors, size, limit)
		})
	}
}

func bounded(t *testing.T, vectors, size int, limit int64) {
	t.Helper()
	all := spaces(t, file(t, filepath.Join(t.TempDir(), "v.db")), limit)
	space, err := all.Space(knn.Kind{Name: "code", Model: "m", Size: size})
	check(t, err)
	for scope := range 3 {
		batch := make([]knn.Point, vectors)
		for i := range batch {
			batch[i] = knn.Point{Scope: fmt.Sprint(scope), Key: fmt.Sprint(i), Vector: make([]float32, size)}
			batch[i].Vector[i%size] = float32(i + 1)
			batch[i].Vector[(i+1)%size] = 1
		}
		check(t, space.Upsert(t.Context(), batch))
	}
	for round := range 3 {
		for scope := range 3 {
			hits, err := space.Search(t.Context(), knn.Filter{Scopes: []string{fmt.Sprint(scope)}}, []float32{1, 0, 0, 0, 0, 0, 0, 0}, 2*vectors)
			if check(t, err); len(hits) != vectors {
				t.Errorf("round %d: %d hits", round, len(hits))
			}
			if held := vector.Held(all); held > limit {
				t.Errorf("%d bytes are held", held)
			}
		}
	}
}
