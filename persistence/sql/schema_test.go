package sql_test

import (
	databasesql "database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

// TestProcessesThatMigrateTogether: each finds the schema whole, and each step was made once.
func TestProcessesThatMigrateTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	const processes = 6
	done := make(chan error, processes)
	for range processes {
		go func() {
			_, err := sql.Migrate(t.Context(), path)
			done <- err
		}()
	}
	for range processes {
		check(t, <-done)
	}
	schema, err := sql.Schema(t.Context(), path)
	check(t, err)
	if schema.Found != newest(t) || len(schema.Steps) != 0 {
		t.Errorf("%+v", schema)
	}
	for _, line := range schemaOf(t, path) {
		if strings.HasPrefix(line, "version") && !strings.HasSuffix(line, " 1") {
			t.Error(line)
		}
	}
}

// TestMigrateBesideAService: a store of the version before goes on while another process brings its database up to
// date.
func TestMigrateBesideAService(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	set := func(value string) error {
		_, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: value}}})
		return err
	}
	check(t, set("before"))
	check(t, onFile(t, path, "CREATE TABLE of_the_next_version (a TEXT)", "ALTER TABLE fact ADD COLUMN of_the_next_version TEXT NOT NULL DEFAULT ''"))
	_, err := sql.Migrate(t.Context(), path) // with nothing to do
	check(t, err)
	check(t, set("after"))
	value, err := store.Fact(t.Context(), "b", "k", time.Now())
	check(t, err)
	if value != "after" {
		t.Errorf("the fact is %q", value)
	}
}

// TestReadersKnowTheSchema: who only reads refuses a database of another version in words, instead of failing over a
// column.
func TestReadersKnowTheSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	check(t, sql.MigrateTo(t.Context(), path, newest(t)-1))
	refuses := func(want string) {
		t.Helper()
		_, err := sql.OpenReader(t.Context(), path)
		if u, ok := errors.AsType[*sql.Unavailable](err); !ok || !strings.Contains(u.Advice().String(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refuses("run zephbot migrate")
	_, err := sql.Migrate(t.Context(), path)
	check(t, err)
	reader, err := sql.OpenReader(t.Context(), path)
	check(t, err)
	check(t, reader.Close())
	check(t, onFile(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"))
	refuses("newer version")
	if _, err := sql.Schema(t.Context(), path); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("schema: %v", err)
	}
}

// onFile runs statements in a database, as another program does.
func onFile(t *testing.T, path string, statements ...string) (err error) {
	t.Helper()
	db, err := databasesql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			return err
		}
	}
	return nil
}
