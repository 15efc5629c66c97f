package vector_test

import (
	"fmt"
	"path/filepath"
	"testing"

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
	const vectors, size = 700, 8
	all := spaces(t, file(t, filepath.Join(t.TempDir(), "v.db")), 3*vectors*(4*size+8)/2)
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
			if held := vector.Held(all); held > 3*vectors*(4*size+8)/2 {
				t.Errorf("%d bytes are held", held)
			}
		}
	}
}
