package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// BenchmarkTurn makes the three Changes of a turn, with the server on this machine and with one that is 2.6 ms away,
// and says how much the server writes to its log for them.
func BenchmarkTurn(b *testing.B) {
	for name, far := range map[string]time.Duration{"here": 0, "2.6ms": 2600 * time.Microsecond} {
		b.Run(name, func(b *testing.B) {
			cluster := pgtest.Shared(b)
			proxy := pgtest.NewProxy(b, cluster)
			base := cluster.Database(b, "")
			s := &steps{tb: b, store: open(b, postgres.Options{URL: proxy.URL(base) + "&pool_max_conns=1"})}
			conn, err := pgx.Connect(b.Context(), cluster.URL(base))
			check(b, err)
			defer func() { check(b, conn.Close(b.Context())) }()
			written := func() (bytes int64) {
				check(b, conn.QueryRow(b.Context(), "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").Scan(&bytes))
				return bytes
			}
			s.play()
			s.play()
			proxy.Far(far)
			trips, before := proxy.Trips(), written()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				s.play()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			n := float64(len(took))
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(proxy.Trips()-trips)/n, "trips/turn")
			b.ReportMetric(float64(written()-before)/n, "log-bytes/turn")
		})
	}
}
