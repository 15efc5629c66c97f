package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Reader reads a database that another process may be writing, or that nobody writes: it takes no lock on the directory
// and changes nothing. Close it.
type Reader struct {
	reader
	pool *sql.DB
}

// OpenReader opens the SQLite file at path for reading. A file that is not there is an error for which errors.Is(err,
// fs.ErrNotExist) holds; one whose schema is another one than that of this program is an *Unavailable.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open for reading: %w", err)
	}
	d := sqliteDialect(path)
	pool, err := sql.Open(d.driver, d.dsn(true))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.path, err)
	}
	pool.SetMaxOpenConns(readers)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(d.wrap("open", err), pool.Close())
	}
	if err := d.current(ctx, pool); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &Reader{reader: reader{q: newQueries(newPooled(pool), nil), dialect: d}, pool: pool}, nil
}

// Close ends the connections.
func (r *Reader) Close() error { return r.pool.Close() }
