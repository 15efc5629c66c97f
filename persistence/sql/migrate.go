package sql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/zephbot/zephbot/persistence/keeping"
)

//go:embed migrations
var migrations embed.FS

// migrateSchema brings the schema up to date and returns its version. A schema that is newer than this program is not
// touched. Processes can migrate at the same time: each step is one transaction. db must have one connection.
//
// The steps are not flushed to the disk one by one. With a write-ahead log that is safe: a power cut undoes the last
// steps, which the next start repeats, and the first commit of the store flushes them together with itself.
func (d *dialect) migrateSchema(ctx context.Context, db *sql.DB) (version int64, err error) {
	if _, err := db.ExecContext(ctx, flushRarely); err != nil {
		return 0, d.wrapError("open", fmt.Errorf("prepare to migrate: %w", err))
	}
	version, err = d.runMigrations(ctx, db)
	// Also if ctx has ended: a connection that does not flush must not be left behind.
	if _, again := db.ExecContext(context.WithoutCancel(ctx), flushEach); again != nil && err == nil {
		return 0, d.wrapError("open", fmt.Errorf("end the migration: %w", again))
	}
	return version, err
}

// How often a connection flushes the write-ahead log to the disk.
const (
	flushRarely = "PRAGMA synchronous = NORMAL" // only when the log is copied into the database
	flushEach   = "PRAGMA synchronous = FULL"   // each commit
)

// runMigrations runs the migrations that are missing.
func (d *dialect) runMigrations(ctx context.Context, db *sql.DB) (int64, error) {
	steps, err := readMigrations(migrations, d.folder)
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(d.engine, db, nil,
		goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	for before := int64(-1); ; {
		current, target, err := provider.GetVersions(ctx)
		switch {
		case err != nil:
			return 0, d.wrapError("open", fmt.Errorf("read schema version: %w", err))
		case current > target:
			return 0, keeping.Newer(d.path, current, target)
		case current == target:
			return target, nil
		}
		_, err = provider.Up(ctx)
		if err == nil {
			return target, nil
		}
		// Otherwise, another process migrated at the same time and was faster with a step.
		if current == before {
			return 0, d.wrapError("migrate", fmt.Errorf("schema %d to %d: %w", current, target, err))
		}
		before = current
	}
}

// readMigrations makes a step of goose of each file in a folder, with all statements of its upward half, which run in
// one transaction. goose's own reader splits a file into statements with buffers of 4 MiB, of which three stay in the
// process; the engines take a text of several statements.
func readMigrations(files fs.FS, folder string) ([]*goose.Migration, error) {
	names, err := fs.Glob(files, path.Join(folder, "*.sql"))
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, 0, len(names))
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		up, err := upwardPart(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		run := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, up)
			return err
		}
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: run}, nil))
	}
	return steps, nil
}

// upwardPart is the part of a migration between the two annotations that ours have. It refuses files with any other
// one, whose meaning would get lost.
func upwardPart(text string) (string, error) {
	const mark, up, down = "+goose", "-- +goose Up\n", "\n-- +goose Down\n"
	_, rest, began := strings.Cut(text, up)
	rest, _, ended := strings.Cut(rest, down)
	if !began || !ended || strings.Count(text, mark) != 2 {
		return "", errors.New("a migration has one line \"-- +goose Up\", " +
			"later one line \"-- +goose Down\", and no other annotation")
	}
	return rest, nil
}
