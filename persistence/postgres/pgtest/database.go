//go:build unix

package pgtest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database creates an empty database, or a copy of a template if one is named, which is dropped with the test, and
// returns its name.
func (c *Cluster) Database(tb testing.TB, template string) string {
	tb.Helper()
	name := c.Name()
	create := "CREATE DATABASE " + name
	if template != "" {
		create += " TEMPLATE " + template
	}
	if err := c.Exec(tb.Context(), "postgres", create); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		err := c.Exec(context.WithoutCancel(tb.Context()), "postgres", "DROP DATABASE "+name+" WITH (FORCE)")
		if err != nil {
			tb.Errorf("drop database: %v", err)
		}
	})
	return name
}

// Exec runs statements in a database, each on its own.
func (c *Cluster) Exec(ctx context.Context, database string, statements ...string) error {
	return Exec(ctx, c.URL(database), statements...)
}

// Exec runs statements in the database at url, each on its own.
func Exec(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Numbers runs a query in a database and returns its single column.
func (c *Cluster) Numbers(ctx context.Context, database, query string, args ...any) ([]int64, error) {
	return Numbers(ctx, c.URL(database), query, args...)
}

// Numbers runs a query in the database at url and returns its single column.
func Numbers(ctx context.Context, url, query string, args ...any) ([]int64, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// clients counts the other connections to a database.
const clients = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

// Quiet waits until nobody is connected to a database: statements sent by a killed process are then done or given up.
func (c *Cluster) Quiet(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var n int
		if err := conn.QueryRow(ctx, clients).Scan(&n); err != nil || n == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Pgvector returns the URL of an empty database of a server that has the extension pgvector, which is not set up yet:
// the one that ZEPH_TEST_PGVECTOR names, which one test after the other may change, or one of the shared cluster.
// Without either, the test is skipped.
func Pgvector(tb testing.TB) string {
	tb.Helper()
	if url := os.Getenv("ZEPH_TEST_PGVECTOR"); url != "" {
		return url
	}
	cluster := Shared(tb)
	name := cluster.Database(tb, "")
	found, err := cluster.Numbers(
		tb.Context(), name, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'",
	)
	if err != nil {
		tb.Fatal(err)
	}
	if found[0] == 0 {
		tb.Skip("PostgreSQL on this machine lacks pgvector (Debian: postgresql-<version>-pgvector), and " +
			"ZEPH_TEST_PGVECTOR " +
			"names no server that has it")
	}
	return cluster.URL(name)
}
