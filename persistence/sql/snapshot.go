package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

// Copy describes a copy of a database.
type Copy struct {
	Schema int64  // 0 = it has no tables
	Mark   []byte // the content of its high-water mark; nil = it never had one
}

// Snapshot copies the SQLite file at path to a new file, as it is at one moment, while another process may be writing
// it. Writers do not wait; the write-ahead log grows until it returns. If there is no database,
// errors.Is(err, fs.ErrNotExist) is true. What it leaves after an error is a file that the caller removes.
func Snapshot(ctx context.Context, path, to string) (Copy, error) {
	if _, err := os.Stat(path); err != nil {
		return Copy{}, fmt.Errorf("copy the database: %w", err)
	}
	d := sqliteDialect(path)
	pool, err := sql.Open(d.driver, d.dsn(false))
	if err != nil {
		return Copy{}, fmt.Errorf("open %s: %w", d.path, err)
	}
	pool.SetMaxOpenConns(1)
	_, err = pool.ExecContext(ctx, `VACUUM INTO ?`, to)
	if err = errors.Join(err, pool.Close()); err != nil {
		return Copy{}, d.wrapError("copy", err)
	}
	if err := os.Chmod(to, 0o600); err != nil {
		return Copy{}, err
	}
	return ReadCopy(ctx, to)
}

// ReadCopy inspects a copy that nobody uses, without changing it or creating a file next to it. A database of a newer
// version is an *Unavailable.
func ReadCopy(ctx context.Context, path string) (Copy, error) {
	d := sqliteDialect(path)
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(d.path)}
	where.RawQuery = url.Values{"mode": {"ro"}, "immutable": {"1"}}.Encode()
	pool, err := sql.Open(d.driver, where.String())
	if err != nil {
		return Copy{}, fmt.Errorf("open %s: %w", d.path, err)
	}
	c, err := d.inspectCopy(ctx, pool)
	if err = errors.Join(err, pool.Close()); err != nil {
		return Copy{}, d.wrapError("read", err)
	}
	return c, nil
}

func (d *dialect) inspectCopy(ctx context.Context, pool *sql.DB) (c Copy, err error) {
	steps, err := d.migrationSteps()
	if err != nil {
		return c, err
	}
	if c.Schema, err = schemaVersion(ctx, pool); err != nil || c.Schema == 0 {
		return c, err
	}
	if _, err := keeping.SchemaOf(d.path, c.Schema, steps); err != nil {
		return c, err
	}
	q := newQueries(newPooled(pool), nil)
	var id string
	named, err := q.queryOne(ctx, func(scan reading.Scan) error { return scan(&id) }, nameQuery)
	if err != nil || !named {
		return c, err
	}
	n, err := readNumbers(ctx, q)
	if err != nil {
		return c, err
	}
	c.Mark = fmt.Appendf(nil, markFormat, id, n.sumOfNumbers())
	return c, nil
}

// KnownSchema returns the version of the newest schema that this program knows.
func KnownSchema() (int64, error) {
	d := sqliteDialect("")
	steps, err := d.migrationSteps()
	if err != nil || len(steps) == 0 {
		return 0, err
	}
	return steps[len(steps)-1].Version, nil
}
