package postgres

import (
	"context"
	databasesql "database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/zephbot/zephbot/persistence/keeping"
)

//go:embed migrations
var migrations embed.FS

// migrationLock is the advisory lock for migrating: processes that start together do it one after the other.
const migrationLock = 0x7a657068_00000001

// Waiting for the lock: seconds between two attempts, and their number.
const lockEvery, lockTries = 1, 120

// migrate brings the schema up to date and returns its version. Migrations only add, so that a process of the previous
// version can continue to work. A schema that is newer than this program is not touched.
func migrate(ctx context.Context, pool *pgxpool.Pool, where string) (version int64, err error) {
	steps, err := readMigrations()
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(migrationLock), lock.WithLockTimeout(lockEvery, lockTries))
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, nil,
		goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true), goose.WithSessionLocker(locker))
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	target := steps[len(steps)-1].Version
	current, err := provider.GetDBVersion(ctx)
	switch {
	case err != nil:
		return 0, unavailable(where, "open", fmt.Errorf("read schema version: %w", err))
	case current == target:
		return target, nil
	case current > target:
		return 0, keeping.Newer(where, current, target)
	}
	if _, err := provider.Up(ctx); err != nil {
		return 0, unavailable(where, "migrate", fmt.Errorf("schema %d to %d: %w", current, target, err))
	}
	return target, nil
}

// readMigrations returns one goose migration per file, with all of its statements, which run in one transaction.
// goose's own reader keeps megabytes of buffers.
func readMigrations() ([]*goose.Migration, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, 0, len(names))
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, tx *databasesql.Tx) error {
			// This mode allows several statements.
			_, err := tx.ExecContext(ctx, string(text), pgx.QueryExecModeSimpleProtocol)
			return err
		}
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: run}, nil))
	}
	return steps, nil
}
