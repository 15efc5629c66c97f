package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// printedSchema is what migrate --json prints.
type printedSchema struct {
	Database         string
	Found, Known     int64
	Applied, Pending []struct {
		Version int64
		Name    string
	}
}

func (w *world) schema(t *testing.T, args ...string) printedSchema {
	t.Helper()
	if code := w.run(t, append([]string{"migrate", "--json"}, args...)...); code != cli.Fine {
		t.Fatalf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	var out printedSchema
	if err := json.Unmarshal(w.out.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkMigrate: an empty database, what a dry run says of it and leaves alone, the migration, and a second one that
// finds nothing to do.
func checkMigrate(t *testing.T, w *world) {
	t.Helper()
	for range 2 { // the first one has changed nothing
		before := w.schema(t, "--dry-run")
		n := len(before.Pending)
		if before.Found != 0 || n < 2 || before.Pending[n-1].Version != before.Known || len(before.Applied) != 0 || before.Pending[0].Name != "store" {
			t.Fatalf("dry run: %+v", before)
		}
	}
	if code := w.run(t, "migrate", "--dry-run"); code != cli.Fine || !strings.Contains(w.out.String(), "to apply: 1 store\n") || !strings.Contains(w.out.String(), ": schema 0, this version makes it ") {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	did := w.schema(t)
	if n := len(did.Applied); did.Found != 0 || n < 2 || did.Applied[n-1].Version != did.Known || len(did.Pending) != 0 {
		t.Errorf("migrated: %+v", did)
	}
	if again := w.schema(t); again.Found != again.Known || len(again.Applied)+len(again.Pending) != 0 || again.Database != did.Database {
		t.Errorf("again: %+v", again)
	}
	if code := w.run(t, "migrate"); code != cli.Fine || !strings.HasSuffix(w.out.String(), ", up to date\n") || strings.Count(w.out.String(), "\n") != 1 {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.env = []string{"ZEPH_DATA_DIR=" + filepath.Join(t.TempDir(), "new")}
	checkMigrate(t, w)
}

func TestMigratePostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	w := here(t)
	w.env = append(w.env, "ZEPH_DATABASE_URL="+cluster.URL(name))
	checkMigrate(t, w)
	if err := cluster.Exec(t.Context(), name, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"migrate"}, {"migrate", "--dry-run"}, {"debug", "dump", "telegram-1-2"}} {
		if code := w.run(t, args...); code != cli.Failed || w.out.Len() > 0 || !strings.Contains(w.err.String(), "newer version of the program (schema 99") {
			t.Errorf("%v of a newer database: exit %d: %s%s", args, code, w.out.String(), w.err.String())
		}
	}
	w.env = append(w.env[:1], "ZEPH_DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/d?connect_timeout=1")
	if code := w.run(t, "migrate"); code != cli.Failed || !strings.Contains(w.err.String(), "cannot be reached") || strings.Contains(w.err.String(), "hunter2") {
		t.Errorf("nobody there: exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	w.env = append(w.env[:1], "ZEPH_DATABASE_URL=mysql://u:hunter2@h/d")
	if code := w.run(t, "migrate"); code != cli.Usage || !strings.Contains(w.err.String(), "begins with postgres:") || strings.Contains(w.err.String(), "hunter2") {
		t.Errorf("another engine: exit %d: %s%s", code, w.out.String(), w.err.String())
	}
}
