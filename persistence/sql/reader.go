package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/zephbot/zephbot/bot"
)

// Reader reads a database while another process may be writing it. It takes no lock on the directory and changes
// nothing. The caller must close it.
type Reader struct {
	reader
	pool *sql.DB
}

// OpenReader opens the SQLite file at path for reading. If the file does not exist, errors.Is(err, fs.ErrNotExist) is
// true. If its schema differs from that of this program, the error is an *Unavailable.
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
		return nil, errors.Join(d.wrapError("open", err), pool.Close())
	}
	if err := d.checkCurrent(ctx, pool); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &Reader{reader: newReader(newQueries(newPooled(pool), nil), d), pool: pool}, nil
}

// Close ends the connections.
func (r *Reader) Close() error { return r.pool.Close() }

// putFact sets a fact, without an end.
const putFact = `INSERT INTO fact (bucket, key, value, expires) VALUES (?, ?, ?, 0) ON CONFLICT (bucket, key) DO UPDATE
	SET value = excluded.value, expires = 0`

// PutFact stores a fact in the SQLite file at path beside the process that uses it. Errors are those of OpenReader.
func PutFact(ctx context.Context, path string, fact bot.Fact) error {
	r, err := OpenReader(ctx, path)
	if err != nil {
		return err
	}
	d := r.dialect
	if err := r.Close(); err != nil {
		return err
	}
	pool, err := sql.Open(d.driver, d.dsn(false))
	if err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	_, err = pool.ExecContext(ctx, putFact, fact.Bucket, fact.Key, fact.Value)
	return errors.Join(d.wrapError("write", err), pool.Close())
}
