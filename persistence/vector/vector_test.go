package vector_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/persistence/vector"
)

// database opens the file in which an embedded store stores its points.
func database(t testing.TB, path string) *sql.Store {
	t.Helper()
	db, err := sql.Open(t.Context(), sql.Options{Path: path, Log: zerolog.Nop()})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

// embedded opens a store over points.
func embedded(t testing.TB, points vector.Points) vector.Store {
	t.Helper()
	store, err := vector.Open(vector.Options{Points: points, Log: zerolog.Nop()})
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	return store
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func point(key, hash string, vector ...float32) knn.Point {
	return knn.Point{Key: key, Hash: hash, Vector: vector, Payload: map[string]string{"key": key}}
}

// holds requires these hashes.
func holds(t *testing.T, index knn.Index, want map[string]string) {
	t.Helper()
	got, err := index.Hashes(t.Context())
	check(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
}

func finds(t *testing.T, index knn.Index, query []float32, want ...knn.Hit) {
	t.Helper()
	got, err := index.Search(t.Context(), query, 10)
	check(t, err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("search for %v (-want +got):\n%s", query, diff)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "zephbot.db") // a copy of it is opened faster than a new one is created
	check(t, database(t, made).Close())
	empty, err := os.ReadFile(made)
	check(t, err)
	storetest.Vectors(t, func(t *testing.T) knn.Index {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		check(t, os.WriteFile(path, empty, 0o600))
		return embedded(t, database(t, path)).Collection(vector.Tools)
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Vectors(t, func(*testing.T) knn.Index { return knn.NewMemory() })
}

func TestEmbeddedOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	db := database(t, path)
	store := embedded(t, db)
	index, other := store.Collection(vector.Tools), store.Collection("code")
	check(t, index.Upsert(t.Context(), []knn.Point{point("s:a", "1", 1, 0), point("s:b", "2", 0, 1), point("s:c", "3", 1, 1)}))
	check(t, other.Upsert(t.Context(), []knn.Point{point("s:a", "other", 0, 1)}))
	check(t, index.Delete(t.Context(), []string{"s:c"}))
	check(t, index.Upsert(t.Context(), []knn.Point{point("s:b", "new", 3, 4)}))
	check(t, store.Close())
	check(t, db.Close())

	store = embedded(t, database(t, path))
	index, other = store.Collection(vector.Tools), store.Collection("code")
	finds(t, index, []float32{1, 0}, knn.Hit{Key: "s:a", Score: 1}, knn.Hit{Key: "s:b", Score: 0.6})
	holds(t, index, map[string]string{"s:a": "1", "s:b": "new"})
	holds(t, other, map[string]string{"s:a": "other"})
	check(t, other.Delete(t.Context(), []string{"s:a"}))
	holds(t, other, map[string]string{})
	holds(t, index, map[string]string{"s:a": "1", "s:b": "new"})
}

func TestACollectionIsOneHoweverOftenItIsAskedFor(t *testing.T) {
	t.Parallel()
	store := embedded(t, database(t, filepath.Join(t.TempDir(), "zephbot.db")))
	check(t, store.Ping(t.Context()))
	first, second := store.Collection(vector.Tools), store.Collection(vector.Tools)
	holds(t, second, map[string]string{})
	check(t, first.Upsert(t.Context(), []knn.Point{point("s:a", "1", 1)}))
	holds(t, second, map[string]string{"s:a": "1"})
}

// faulty is a database that fails or blocks on demand.
type faulty struct {
	vector.Points
	reads, writes atomic.Pointer[error]
	began, wait   chan struct{} // nil = does not wait
	loads         atomic.Int64
}

func (f *faulty) EachPoint(ctx context.Context, collection string, see func(knn.Point) error) error {
	f.loads.Add(1)
	if err := f.reads.Load(); err != nil {
		return *err
	}
	return f.Points.EachPoint(ctx, collection, see)
}

func (f *faulty) UpsertPoints(ctx context.Context, collection string, points []knn.Point) error {
	if f.wait != nil {
		f.began <- struct{}{}
		<-f.wait
	}
	if err := f.writes.Load(); err != nil {
		return *err
	}
	return f.Points.UpsertPoints(ctx, collection, points)
}

func (f *faulty) DeletePoints(ctx context.Context, collection string, keys []string) error {
	if err := f.writes.Load(); err != nil {
		return *err
	}
	return f.Points.DeletePoints(ctx, collection, keys)
}

func TestWhatWasNotStoredIsNotFound(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	db := &faulty{Points: database(t, filepath.Join(t.TempDir(), "zephbot.db"))}
	index := embedded(t, db).Collection(vector.Tools)
	check(t, index.Upsert(t.Context(), []knn.Point{point("s:a", "1", 1, 0)}))
	db.writes.Store(&full)
	if err := index.Upsert(t.Context(), []knn.Point{point("s:a", "2", 0, 1), point("s:b", "3", 1, 1)}); !errors.Is(err, full) {
		t.Errorf("store: %v, want that the disk is full", err)
	}
	if err := index.Delete(t.Context(), []string{"s:a"}); !errors.Is(err, full) {
		t.Errorf("remove: %v, want that the disk is full", err)
	}
	holds(t, index, map[string]string{"s:a": "1"})
	finds(t, index, []float32{2, 0}, knn.Hit{Key: "s:a", Score: 1})
	db.writes.Store(nil)
	check(t, index.Upsert(t.Context(), []knn.Point{point("s:b", "3", 0, 1)}))
	holds(t, index, map[string]string{"s:a": "1", "s:b": "3"})
}

func TestALoadThatFailedIsTriedAgainAndOneThatSucceededIsNot(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk reports an error")
	db := &faulty{Points: database(t, filepath.Join(t.TempDir(), "zephbot.db"))}
	db.reads.Store(&broken)
	index := embedded(t, db).Collection(vector.Tools)
	if _, err := index.Hashes(t.Context()); !errors.Is(err, broken) {
		t.Errorf("hashes: %v", err)
	}
	if _, err := index.Search(t.Context(), []float32{1}, 1); !errors.Is(err, broken) {
		t.Errorf("search: %v", err)
	}
	if err := index.Upsert(t.Context(), []knn.Point{point("s:a", "1", 1)}); !errors.Is(err, broken) {
		t.Errorf("store: %v", err)
	}
	db.reads.Store(nil)
	holds(t, index, map[string]string{})
	loads := db.loads.Load()
	check(t, index.Upsert(t.Context(), []knn.Point{point("s:a", "1", 1)}))
	finds(t, index, []float32{1}, knn.Hit{Key: "s:a", Score: 1})
	holds(t, index, map[string]string{"s:a": "1"})
	if got := db.loads.Load(); got != loads {
		t.Errorf("loaded %d times more", got-loads)
	}
}

func TestReadsDoNotWaitForAWriteAndASecondWriteHonoursItsContext(t *testing.T) {
	t.Parallel()
	db := &faulty{Points: database(t, filepath.Join(t.TempDir(), "zephbot.db")), began: make(chan struct{}), wait: make(chan struct{})}
	index := embedded(t, db).Collection(vector.Tools)
	holds(t, index, map[string]string{})
	written := make(chan error)
	go func() { written <- index.Upsert(t.Context(), []knn.Point{point("s:a", "1", 1)}) }()
	<-db.began // the first write hangs
	holds(t, index, map[string]string{})
	finds(t, index, []float32{1})
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() { second <- index.Delete(ctx, []string{"s:a"}) }()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the second write: %v, want that its context has ended", err)
	}
	close(db.wait)
	check(t, <-written)
	holds(t, index, map[string]string{"s:a": "1"})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options vector.Options
		want    string
	}{
		"another backend":       {vector.Options{Backend: "Pinecone"}, `vector.backend: "Pinecone" is unknown: want "embedded" or "qdrant"`},
		"no database":           {vector.Options{}, "has no database"},
		"embedded, no database": {vector.Options{Backend: vector.Embedded}, "has no database"},
		"qdrant without a URL":  {vector.Options{Backend: vector.Qdrant}, "vector.url: is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := vector.Open(test.options)
			if store != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want %q", store, err, test.want)
			}
		})
	}
}

func TestOpenDoesNotWaitForQdrant(t *testing.T) {
	t.Parallel()
	store, err := vector.Open(vector.Options{Backend: vector.Qdrant, URL: "http://192.0.2.1", APIKey: "key", Log: zerolog.Nop()})
	check(t, err)
	if store.Collection(vector.Tools) == nil {
		t.Error("there is no collection")
	}
	check(t, store.Close())
}
