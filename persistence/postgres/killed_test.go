package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// TestAMigrationIsKilledAnywhere ends a process at every piece of what it sends while it migrates, before the server has
// it and after: its lock ends with it, and the next process completes the schema without waiting for it.
func TestAMigrationIsKilledAnywhere(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	whole := cluster.URL(cluster.Database(t, ""))
	check(t, postgres.MigrateTo(t.Context(), whole, newest(t)))
	want := speak(t, whole).columns()
	old := newest(t) - 1
	for at, reached := int64(1), true; reached; at++ {
		how := []pgtest.Broken{pgtest.Before, pgtest.After}[at%2]
		name := cluster.Database(t, "")
		check(t, postgres.MigrateTo(t.Context(), cluster.URL(name), old))
		proxy := pgtest.NewProxy(t, cluster)
		dead, end := context.WithTimeout(t.Context(), 30*time.Second)
		var sent atomic.Int64
		proxy.Break(func([]byte) pgtest.Broken {
			if sent.Add(1) < at {
				return pgtest.Whole
			}
			end() // a dead process does nothing more
			return how
		})
		_, err := postgres.Migrate(dead, proxy.URL(name))
		end()
		reached = sent.Load() >= at
		if !reached {
			check(t, err)
		}
		next, over := context.WithTimeout(t.Context(), 20*time.Second)
		_, err = postgres.Migrate(next, cluster.URL(name))
		over()
		if err != nil {
			t.Fatalf("piece %d, %d: the next process: %v", at, how, err)
		}
		if diff := cmp.Diff(want, speak(t, cluster.URL(name)).columns()); diff != "" {
			t.Errorf("piece %d, %d (-whole +killed):\n%s", at, how, diff)
		}
	}
}
