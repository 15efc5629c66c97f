package postgres

import (
	"context"
	"io/fs"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	hasVersions  = `SELECT to_regclass('goose_db_version') IS NOT NULL`
	versionQuery = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
)

// Schema reads the schema version of the database at url while other processes may be using it. It changes nothing. A
// database of a newer version is a *keeping.Unavailable.
func Schema(ctx context.Context, url string) (keeping.Schema, error) {
	return within(ctx, url, true, func(*reader) error { return nil })
}

// Migrate brings the database at url up to date while other processes may be using or migrating it, and returns the
// schema that it had before. Errors are those of Open.
func Migrate(ctx context.Context, url string) (keeping.Schema, error) {
	return within(ctx, url, false, func(r *reader) error {
		_, err := migrate(ctx, r.pool, r.where)
		return err
	})
}

// within connects, reads the schema version, and calls then.
func within(ctx context.Context, url string, readOnly bool, then func(*reader) error) (keeping.Schema, error) {
	pool, err := connect(ctx, url, readOnly)
	if err != nil {
		return keeping.Schema{}, err
	}
	defer pool.Close()
	r := &reader{pool: pool, where: place(pool.Config()), patience: patience}
	if err := r.supported(ctx); err != nil {
		return keeping.Schema{}, err
	}
	schema, err := r.schema(ctx)
	if err != nil {
		return keeping.Schema{}, err
	}
	return schema, then(r)
}

// schema compares the database with the migrations of this program.
func (r *reader) schema(ctx context.Context) (keeping.Schema, error) {
	var there bool
	if _, err := reading.One(ctx, r, func(scan reading.Scan) error { return scan(&there) }, hasVersions); err != nil {
		return keeping.Schema{}, r.problem("read schema version", err)
	}
	var found int64
	if there {
		if _, err := reading.One(ctx, r, func(scan reading.Scan) error { return scan(&found) }, versionQuery); err != nil {
			return keeping.Schema{}, r.problem("read schema version", err)
		}
	}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return keeping.Schema{}, err
	}
	steps := make([]keeping.Step, len(names))
	for i, name := range names {
		if steps[i], err = keeping.StepOf(name); err != nil {
			return keeping.Schema{}, err
		}
	}
	return keeping.SchemaOf(r.where, found, steps)
}

// current rejects a database whose schema this program cannot read.
func (r *reader) current(ctx context.Context) error {
	schema, err := r.schema(ctx)
	if err != nil || len(schema.Steps) == 0 {
		return err
	}
	return keeping.Older(r.where, schema.Found, schema.Known)
}
