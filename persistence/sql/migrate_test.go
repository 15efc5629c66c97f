package sql_test

import (
	databasesql "database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/zephbot/zephbot/persistence/sql"
)

// TestTheSchemaIsTheOneOfGoose: our reading of the migrations makes what goose's own reading makes, and records the
// same versions.
func TestTheSchemaIsTheOneOfGoose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.db"), filepath.Join(dir, "theirs.db")
	check(t, open(t, sql.Options{Path: ours}).Close())
	db, err := databasesql.Open("sqlite", "file:"+theirs)
	check(t, err)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations/sqlite"))
	check(t, err)
	_, err = provider.Up(t.Context())
	check(t, err)
	check(t, db.Close())
	want := schemaOf(t, theirs)
	if len(want) < 10 {
		t.Fatalf("goose made %d tables and indexes", len(want))
	}
	if diff := cmp.Diff(want, schemaOf(t, ours)); diff != "" {
		t.Errorf("schemas differ (-goose +ours):\n%s", diff)
	}
}

// schemaOf lists what a database consists of, white space and comments of the statements apart, and the versions that
// goose recorded.
func schemaOf(t *testing.T, path string) []string {
	t.Helper()
	db, err := databasesql.Open("sqlite", "file:"+path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), `SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema
		UNION ALL SELECT 'version ' || version_id || ' ' || is_applied FROM goose_db_version ORDER BY 1`)
	check(t, err)
	defer func() { check(t, rows.Close()) }()
	var list []string
	for rows.Next() {
		var line string
		check(t, rows.Scan(&line))
		list = append(list, strings.Join(strings.Fields(line), " "))
	}
	check(t, rows.Err())
	return list
}

func TestUpward(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, want string
		refused    bool
	}{
		"both halves":          {text: "-- why\n\n-- +goose Up\nCREATE;\nINDEX;\n\n-- +goose Down\nDROP;\n", want: "CREATE;\nINDEX;\n"},
		"no way back":          {text: "-- +goose Up\nCREATE;\n", refused: true},
		"nothing upward":       {text: "CREATE;\n\n-- +goose Down\nDROP;\n", refused: true},
		"down first":           {text: "-- +goose Down\nDROP;\n-- +goose Up\nCREATE;\n", refused: true},
		"outside transactions": {text: "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE;\n-- +goose Down\nDROP;\n", refused: true},
		"a marked statement": {
			text:    "-- +goose Up\n-- +goose StatementBegin\nCREATE;\n-- +goose StatementEnd\n-- +goose Down\nDROP;\n",
			refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sql.Upward(test.text)
			if got != test.want || (err != nil) != test.refused {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestMigrationsEndDurable: a migration, which does not flush each of its steps, leaves a connection that flushes each
// commit.
func TestMigrationsEndDurable(t *testing.T) {
	t.Parallel()
	const full = 2
	path := filepath.Join(t.TempDir(), "a.db")
	for range 2 { // with steps to do, and with none
		level, err := sql.FlushedAfterMigrate(t.Context(), path)
		check(t, err)
		if level != full {
			t.Errorf("PRAGMA synchronous is %d, want %d", level, full)
		}
	}
}
