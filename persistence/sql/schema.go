package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/zephbot/zephbot/persistence/keeping"
)

const (
	hasVersions  = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'goose_db_version'`
	versionQuery = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1`
)

// Schema reads the schema version of the SQLite file at path while another process may be writing it. A missing file
// has none. A database of a newer version is an *Unavailable. It changes nothing.
func Schema(ctx context.Context, path string) (keeping.Schema, error) {
	d := sqliteDialect(path)
	steps, err := d.migrationSteps()
	if err != nil {
		return keeping.Schema{}, err
	}
	if _, err := os.Stat(d.path); errors.Is(err, fs.ErrNotExist) {
		return keeping.SchemaOf(d.path, 0, steps)
	}
	pool, err := sql.Open(d.driver, d.dsn(true))
	if err != nil {
		return keeping.Schema{}, fmt.Errorf("open %s: %w", d.path, err)
	}
	found, err := schemaVersion(ctx, pool)
	if err = errors.Join(err, pool.Close()); err != nil {
		return keeping.Schema{}, d.wrapError("read", err)
	}
	return keeping.SchemaOf(d.path, found, steps)
}

// Migrate brings the SQLite file at path up to date while other processes may be writing or migrating it, and returns
// the schema that it had before. A missing file is created. Errors are those of Open.
func Migrate(ctx context.Context, path string) (keeping.Schema, error) {
	before, err := retryBusy(ctx, func() (keeping.Schema, error) { return Schema(ctx, path) })
	if err != nil {
		return keeping.Schema{}, err
	}
	return retryBusy(ctx, func() (keeping.Schema, error) {
		d := sqliteDialect(path)
		p, err := d.openPools(ctx)
		if err != nil {
			return keeping.Schema{}, err
		}
		_, err = d.migrateSchema(ctx, p.write)
		return before, errors.Join(err, p.closePools())
	})
}

const (
	// migrating limits the wait for other processes that migrate.
	migrating = 10 * time.Second
	// migratingEach is the pause between two attempts.
	migratingEach = 20 * time.Millisecond
)

// retryBusy retries what failed because of another process. SQLite itself waits for row locks, but not while another
// process creates the file, or switches it to a write-ahead log.
func retryBusy(ctx context.Context, try func() (keeping.Schema, error)) (keeping.Schema, error) {
	ctx, cancel := context.WithTimeout(ctx, migrating)
	defer cancel()
	ticker := time.NewTicker(migratingEach)
	defer ticker.Stop()
	for {
		schema, err := try()
		if !isBusy(err) {
			return schema, err
		}
		select {
		case <-ctx.Done():
			return schema, err
		case <-ticker.C:
		}
	}
}

// isBusy reports whether another connection to the file was in the way.
func isBusy(err error) bool {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return false
	}
	code := failed.Code() & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// schemaVersion reads the number of the newest migration in a database; 0 = none.
func schemaVersion(ctx context.Context, db *sql.DB) (found int64, err error) {
	if err := db.QueryRowContext(ctx, hasVersions).Scan(&found); err != nil || found == 0 {
		return 0, err
	}
	return found, db.QueryRowContext(ctx, versionQuery).Scan(&found)
}

// checkCurrent rejects a database whose schema this program cannot read.
func (d *dialect) checkCurrent(ctx context.Context, db *sql.DB) error {
	steps, err := d.migrationSteps()
	if err != nil {
		return err
	}
	found, err := schemaVersion(ctx, db)
	if err != nil {
		return d.wrapError("read", err)
	}
	schema, err := keeping.SchemaOf(d.path, found, steps)
	if err != nil || len(schema.Steps) == 0 {
		return err
	}
	return keeping.Older(d.path, found, schema.Known)
}

// migrationSteps lists the migrations, in order.
func (d *dialect) migrationSteps() ([]keeping.Step, error) {
	names, err := fs.Glob(migrations, path.Join(d.folder, "*.sql"))
	if err != nil {
		return nil, err
	}
	steps := make([]keeping.Step, len(names))
	for i, name := range names {
		if steps[i], err = keeping.StepOf(name); err != nil {
			return nil, err
		}
	}
	return steps, nil
}
