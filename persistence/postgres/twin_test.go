package postgres_test

import (
	databasesql "database/sql"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/sql"
)

// own are the columns that only PostgreSQL has, and those that only SQLite has.
var (
	ownHere = []string{
		"lane.version", "outbox.change", "applied.change", "applied.made", "applied.at",
		// SQLite has one process, which locks the directory
		"process.id", "process.until", "process.shared", "process.started", "process.host", "process.pid", "process.ledger",
		"outbox.owner",
	}
	ownOnly = []string{}
)

// TestTheTablesAreThoseOfSQLite: what one engine keeps, the other keeps too.
func TestTheTablesAreThoseOfSQLite(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	check(t, open(t, postgres.Options{URL: cluster.URL(name)}).Close())
	conn, err := pgx.Connect(t.Context(), cluster.URL(name))
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	rows, err := conn.Query(t.Context(), "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'")
	check(t, err)
	here, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)

	path := filepath.Join(t.TempDir(), "zephbot.db")
	store, err := sql.Open(t.Context(), sql.Options{Path: path, Log: zerolog.Nop()})
	check(t, err)
	check(t, store.Close())
	db, err := databasesql.Open("sqlite", path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	found, err := db.QueryContext(t.Context(), "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'")
	check(t, err)
	defer func() { check(t, found.Close()) }()
	there := map[string]bool{}
	for found.Next() {
		var column string
		check(t, found.Scan(&column))
		there[column] = true
	}
	check(t, found.Err())
	for _, column := range here {
		if !there[column] && !slices.Contains(ownHere, column) && !ofVectors(column) && !ofGoose(column) {
			t.Errorf("SQLite has no %s", column)
		}
		delete(there, column)
	}
	for column := range maps.Keys(there) {
		if !slices.Contains(ownOnly, column) && !ofGoose(column) && !strings.HasPrefix(column, "sqlite_") {
			t.Errorf("PostgreSQL has no %s", column)
		}
	}
}

// ofVectors reports whether a column is one of texts that are found by their meaning. SQLite keeps them in a file of their
// own (persistence/vector), whose suite is played on both.
func ofVectors(column string) bool {
	return strings.HasPrefix(column, "vector_owner.") || strings.HasPrefix(column, "vector_entry.")
}

func ofGoose(column string) bool { return strings.HasPrefix(column, "goose_db_version.") }
