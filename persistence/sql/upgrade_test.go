package sql_test

import (
	databasesql "database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/persistence/upgradetest"
	"github.com/zephbot/zephbot/persistence/vector"
	"github.com/zephbot/zephbot/tools/overflow"
)

// traces are what the stores of released schemas said, one file a schema.
const traces = "testdata/upgrade"

// newest is the schema of this program.
func newest(t *testing.T) int64 {
	t.Helper()
	files, err := filepath.Glob("migrations/sqlite/*.sql")
	check(t, err)
	step, err := keeping.StepOf(files[len(files)-1]) // Glob sorts
	check(t, err)
	return step.Version
}

// TestRecord keeps what the store of this schema says, before another migration is added to a version that is released
// (ZEPH_RECORD=1).
func TestRecord(t *testing.T) { //nolint:paralleltest // its subtests are
	if os.Getenv("ZEPH_RECORD") == "" {
		t.Skip("ZEPH_RECORD is not set")
	}
	var r upgradetest.Recorder
	t.Cleanup(func() {
		schema := newest(t)
		check(t, os.MkdirAll(traces, 0o750))
		check(t, r.Trace(schema).Save(filepath.Join(traces, fmt.Sprintf("%05d.jsonl.gz", schema))))
	})
	told := func(t *testing.T, options sql.Options) *sql.Store {
		t.Helper()
		section := strings.TrimPrefix(t.Name(), "TestRecord/")
		store := open(t, options)
		if !strings.Contains(section, "many_writers") { // what they do is in an order of chance
			store.Tell(func(query string, args []any) { r.Record(section, upgradetest.Group{{Query: query, Args: args}}) })
		}
		return store
	}
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) bot.Store { t.Helper(); return told(t, sql.Options{}) })
	})
	t.Run("outputs", func(t *testing.T) {
		storetest.Overflow(t, func(t *testing.T) overflow.Store { t.Helper(); return told(t, sql.Options{}) })
	})
	t.Run("files", func(t *testing.T) {
		storetest.Blobs(t, func(t *testing.T, limit int64) blob.Store { t.Helper(); return told(t, sql.Options{BlobBytes: limit}) })
	})
	t.Run("vectors", func(t *testing.T) {
		storetest.Vectors(t, func(t *testing.T) knn.Index {
			t.Helper()
			store, err := vector.Open(vector.Options{Backend: vector.Embedded, Points: told(t, sql.Options{})})
			check(t, err)
			return store.Collection(vector.Tools)
		})
	})
	t.Run("upkeep", func(t *testing.T) {
		storetest.Upkeep(t, told(t, sql.Options{}))
	})
}

// replay says a section to a database again, over one connection that keeps its statements as a store does, and gives
// the answers. Meanwhile is called in the middle.
func replay(t *testing.T, path string, section *upgradetest.Section, meanwhile func()) []string {
	t.Helper()
	db, err := databasesql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)&_pragma=synchronous(OFF)")
	check(t, err)
	defer func() { check(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	statements := map[string]*databasesql.Stmt{}
	defer func() {
		for _, s := range statements {
			check(t, s.Close())
		}
	}()
	var answers []string
	open := false // a transaction is
	due := meanwhile != nil
	for i, group := range section.Groups {
		for _, run := range group {
			if due && !open && i >= len(section.Groups)/2 {
				meanwhile()
				due = false
			}
			answers = append(answers, answer(t, db, statements, run))
			switch {
			case strings.HasPrefix(run.Query, "BEGIN"):
				open = true
			case run.Query == "COMMIT", run.Query == "ROLLBACK":
				open = false
			}
		}
	}
	if due { // a section of one statement
		meanwhile()
	}
	return answers
}

// answer runs one statement and gives what it answers and how many rows it changed, or its error.
func answer(t *testing.T, db *databasesql.DB, statements map[string]*databasesql.Stmt, run upgradetest.Run) string {
	t.Helper()
	said := strings.Join(strings.Fields(run.Query), " ") + " " + upgradetest.Shown(run.Args)
	stmt, err := statements[run.Query], error(nil)
	if stmt == nil {
		if stmt, err = db.PrepareContext(t.Context(), run.Query); err != nil {
			return said + ": " + err.Error()
		}
		statements[run.Query] = stmt
	}
	rows, err := stmt.QueryContext(t.Context(), run.Args...)
	if err != nil {
		return said + ": " + err.Error()
	}
	lines, err := printed(rows)
	if err != nil {
		return said + ": " + err.Error()
	}
	if !run.Ordered() {
		slices.Sort(lines)
	}
	var changed int64
	check(t, db.QueryRowContext(t.Context(), "SELECT total_changes()").Scan(&changed))
	return fmt.Sprintf("%s: %s (%d changes so far)", said, strings.Join(lines, "; "), changed)
}

// printed are the rows of an answer as texts.
func printed(rows *databasesql.Rows) (lines []string, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		lines = append(lines, upgradetest.Shown(values))
	}
	return lines, rows.Err()
}

// dump gives what is in the tables of a database, but for names that are made up at random.
func dump(t *testing.T, path string) map[string][]string {
	t.Helper()
	db, err := databasesql.Open("sqlite", "file:"+path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'`)
	check(t, err)
	names, err := printed(rows)
	check(t, err)
	tables := map[string][]string{}
	for _, name := range names {
		name = strings.Trim(name, `["]`)
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+name) //nolint:gosec // a name of the schema
		check(t, err)
		lines, err := printed(rows)
		check(t, err)
		slices.Sort(lines)
		tables[name] = lines
	}
	return tables
}

// TestTheVersionBeforeGoesOn lets the stores of released schemas speak to the schema of today: what they are answered,
// and what they leave behind, is what it was, whether the schema was brought up to date before, in the middle or after.
func TestTheVersionBeforeGoesOn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(traces + "/*.jsonl.gz")
	check(t, err)
	if len(files) == 0 {
		t.Fatal("no trace of a released schema")
	}
	for _, file := range files {
		trace, err := upgradetest.Load(file)
		check(t, err)
		old, now := schemaFile(t, trace.Schema), schemaFile(t, newest(t))
		for _, section := range trace.Sections {
			t.Run(fmt.Sprint(trace.Schema, " ", section.Name), func(t *testing.T) {
				t.Parallel()
				checkSection(t, &section, old, now)
			})
		}
	}
}

// checkSection plays a section three times; old and now are empty databases of the two schemas.
func checkSection(t *testing.T, section *upgradetest.Section, old, now []byte) {
	t.Helper()
	file := func(empty []byte) string {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		check(t, os.WriteFile(path, empty, 0o600))
		return path
	}
	after, before, middle := file(old), file(now), file(old)
	want := replay(t, after, section, nil)
	check(t, sql.MigrateTo(t.Context(), after, newest(t)))
	left := dump(t, after)
	for what, got := range map[string]struct {
		path    string
		answers []string
	}{
		"before":        {before, replay(t, before, section, nil)},
		"in the middle": {middle, replay(t, middle, section, func() { check(t, sql.MigrateTo(t.Context(), middle, newest(t))) })},
	} {
		if diff := cmp.Diff(want, got.answers); diff != "" {
			t.Errorf("migrated %s: the answers differ (-old schema +new schema):\n%s", what, diff)
		}
		if diff := cmp.Diff(left, dump(t, got.path)); diff != "" {
			t.Errorf("migrated %s: what is left differs (-migrated after +%s):\n%s", what, what, diff)
		}
	}
	store := open(t, sql.Options{Path: before})
	_, err := store.Recover(t.Context(), "of this version")
	check(t, err)
	_, err = store.Sweep(t.Context(), time.Now().AddDate(10, 0, 0), sql.Retention{Journal: time.Hour, Outbox: time.Hour, Blobs: time.Hour})
	check(t, err)
}

// schemaFile is an empty database of a schema.
func schemaFile(t *testing.T, version int64) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	check(t, sql.MigrateTo(t.Context(), path, version))
	data, err := os.ReadFile(path)
	check(t, err)
	return data
}

// TestMigrationsOnlyAdd: a process of the version before goes on beside each migration since the first release, and the
// migration says how.

func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/sqlite/*.sql")
	check(t, err)
	for _, file := range files[6:] { // the first release had six
		text, err := os.ReadFile(file)
		check(t, err)
		up, err := sql.Upward(string(text))
		check(t, err)
		for _, problem := range upgradetest.Forbidden(up) {
			t.Errorf("%s: %s", file, problem)
		}
		if !upgradetest.Promised(string(text)) {
			t.Errorf("%s: no line %q says what a process of the version before does with it", file, upgradetest.Promise+"…")
		}
	}
}
