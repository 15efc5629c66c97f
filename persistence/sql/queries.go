package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	// The driver registers itself under the name "sqlite".
	_ "modernc.org/sqlite"
)

// preparer is a connection, or a pool of them.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// queries runs statements, each prepared once.
type queries struct {
	on    preparer
	watch func(query string) // told of each run; nil = nobody
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

func newQueries(on preparer, watch func(query string)) *queries {
	return &queries{on: on, watch: watch, stmts: map[string]*sql.Stmt{}}
}

// stmt prepares a query for a run.
func (q *queries) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if q.watch != nil {
		q.watch(query)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if stmt, ok := q.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := q.on.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	q.stmts[query] = stmt
	return stmt, nil
}

// close forgets the statements. Their connection goes next, so errors say nothing new.
func (q *queries) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, stmt := range q.stmts {
		_ = stmt.Close()
	}
	clear(q.stmts)
}

func (q *queries) exec(ctx context.Context, query string, args ...any) error {
	_, err := q.changed(ctx, query, args...)
	return err
}

// changed runs a statement and says how many rows it changed.
func (q *queries) changed(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := q.stmt(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// scanner reads the columns of one row.
type scanner func(dest ...any) error

// one reads the only row of a query; found is false when there is none.
func (q *queries) one(ctx context.Context, read func(scanner) error, query string, args ...any) (found bool, err error) {
	stmt, err := q.stmt(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return false, err
	}
	err = read(stmt.QueryRowContext(ctx, args...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each reads every row of a query; errStop ends it early.
func (q *queries) each(ctx context.Context, read func(scanner) error, query string, args ...any) (err error) {
	stmt, err := q.stmt(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}

var errStop = errors.New("enough")
