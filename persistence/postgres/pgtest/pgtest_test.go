//go:build unix

package pgtest_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func ask(t *testing.T, conn *pgx.Conn) error {
	t.Helper()
	var one int
	return conn.QueryRow(t.Context(), "SELECT 1").Scan(&one)
}

func TestAProxyCountsTripsAndBreaksConnections(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	proxy := pgtest.NewProxy(t, cluster)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), proxy.URL(name))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	conn := connect()
	if err := ask(t, conn); err != nil { // prepares it
		t.Fatal(err)
	}
	before := proxy.Trips()
	var batch pgx.Batch
	for range 10 {
		batch.Queue("SELECT 1")
	}
	if err := conn.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	if got := proxy.Trips() - before; got != 1 {
		t.Errorf("a batch of ten took %d trips", got)
	}
	proxy.Break(func([]byte) pgtest.Broken { return pgtest.After })
	if _, err := conn.Exec(t.Context(), "CREATE TABLE done (n int)"); err == nil {
		t.Error("an answer came through a connection that breaks after what was sent")
	}
	proxy.Break(nil)
	conn = connect()
	if _, err := conn.Exec(t.Context(), "DROP TABLE done"); err != nil {
		t.Errorf("the server did not do what it was sent: %v", err)
	}
	proxy.Cut()
	if err := ask(t, conn); err == nil {
		t.Error("a connection that was cut answers")
	}
}
