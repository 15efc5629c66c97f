package postgres_test

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/tools/overflow"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// open opens a store that is closed with its test.
func open(tb testing.TB, options postgres.Options) *postgres.Store {
	tb.Helper()
	options.Log = zerolog.Nop()
	store, err := postgres.Open(tb.Context(), options)
	check(tb, err)
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return store
}

// template makes a database with the schema and nothing in it: a copy is made faster than the schema.
func template(tb testing.TB) (cluster *pgtest.Cluster, name string) {
	tb.Helper()
	cluster = pgtest.Shared(tb)
	name = cluster.Database(tb, "")
	store, err := postgres.Open(tb.Context(), postgres.Options{URL: cluster.URL(name), Log: zerolog.Nop()})
	check(tb, err)
	check(tb, store.Close())
	return cluster, name
}

// fresh opens an empty store.
func fresh(tb testing.TB) *postgres.Store {
	tb.Helper()
	cluster := pgtest.Shared(tb)
	return open(tb, postgres.Options{URL: cluster.URL(cluster.Database(tb, ""))})
}

func TestStore(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Run(t, func(t *testing.T) bot.Store {
		return open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, empty))})
	})
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Overflow(t, func(t *testing.T) overflow.Store {
		return open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, empty))})
	})
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Blobs(t, func(t *testing.T, limit int64) blob.Store {
		return open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, empty)), BlobBytes: limit})
	})
}

func TestTwoHandles(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Race(t, func(t *testing.T) (one, two bot.Store) {
		url := cluster.URL(cluster.Database(t, empty))
		return open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	})
}

func TestStoreBehavesLikeTheOneInMemory(t *testing.T) {
	t.Parallel()
	storetest.Compare(t, bottest.New(), fresh(t))
}

func TestUpkeep(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	storetest.Upkeep(t, open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, "")), Owner: "alive"}))
}
