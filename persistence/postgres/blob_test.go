package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Files(t, func(t *testing.T, now func() time.Time, limit int64) (storetest.FileStore, storetest.FileRows) {
		t.Helper()
		url := cluster.URL(cluster.Database(t, empty))
		return open(t, postgres.Options{URL: url, Now: now, BlobBytes: limit}), func(table string) (n int) {
			conn, err := pgx.Connect(t.Context(), url)
			check(t, err)
			check(t, conn.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
			check(t, conn.Close(t.Context()))
			return n
		}
	})
}
