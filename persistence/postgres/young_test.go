package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// TestYoungDatabaseIsReadByIndex begins with empty tables, of which the server knows nothing yet: plans that it makes
// then are used until it has counted the rows, however many have come.
func TestYoungDatabaseIsReadByIndex(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	check(t, open(t, postgres.Options{URL: cluster.URL(name)}).Close())
	for _, table := range []string{"inbox", "outbox", "lane", "journal", "charge", "applied"} {
		// which counts too
		check(t, cluster.Exec(t.Context(), name, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)"))
	}
	before := readWhole(t, cluster, name)
	store := open(t, postgres.Options{URL: cluster.URL(name) + "&pool_max_conns=1"})
	s := &steps{tb: t, store: store}
	const turns = 20 // the server keeps a plan after it has made five for one statement
	for range turns {
		s.play()
	}
	for range turns {
		_, err := store.Ready(t.Context(), "telegram", "1", time.Now(), 10)
		check(t, err)
		_, err = store.Lane(t.Context(), session)
		check(t, err)
		_, err = store.Next(t.Context(), session, 10)
		check(t, err)
	}
	check(t, store.Close()) // a connection tells of its scans when it ends
	if got := readWhole(t, cluster, name) - before; got != 0 {
		t.Errorf("%d turns read tables from end to end %d times", turns, got)
	}
}

// readWhole is how often tables of the service were read from end to end, as soon as all who did have told.
func readWhole(t *testing.T, cluster *pgtest.Cluster, database string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check(t, cluster.Quiet(ctx, database))
	scans, err := cluster.Numbers(ctx, database, `SELECT COALESCE(SUM(seq_scan), 0)::bigint FROM pg_stat_user_tables
		WHERE relname IN ('inbox', 'outbox', 'lane', 'journal', 'charge', 'applied')`)
	check(t, err)
	return scans[0]
}
