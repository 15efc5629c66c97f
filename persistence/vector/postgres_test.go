package vector_test

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// server opens a database of PostgreSQL.
func server(t *testing.T, url string) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: zerolog.Nop()})
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	return store
}

func TestSpacesInPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	db := server(t, cluster.URL(cluster.Database(t, "")))
	storetest.Spaces(t, func(t *testing.T) knn.Spaces { return spaces(t, db.Entries(), 0) })
}

// TestProcessesShareAnIndex: what one process stores or removes, another one finds or misses at once, although each has
// copies in its memory.
func TestProcessesShareAnIndex(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	kind := knn.Kind{Name: "code", Model: "m", Size: 1}
	one, err := spaces(t, server(t, url).Entries(), 0).Space(kind)
	check(t, err)
	two, err := spaces(t, server(t, url).Entries(), 0).Space(kind)
	check(t, err)
	found := func(in knn.Space, want int) {
		t.Helper()
		hits, err := in.Search(t.Context(), knn.Filter{Scopes: []string{"a"}}, []float32{1}, 5)
		if check(t, err); len(hits) != want {
			t.Errorf("%d hits, want %d", len(hits), want)
		}
	}
	found(two, 0)
	check(t, one.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "1", Vector: []float32{1}}}))
	found(two, 1)
	check(t, two.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "2", Vector: []float32{1}}}))
	found(one, 2)
	found(two, 2)
	check(t, one.Forget(t.Context(), "a"))
	found(two, 0)
	check(t, two.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "3", Vector: []float32{1}}}))
	found(one, 1)
}
