package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/zephbot/zephbot/persistence/reading"
)

// engine runs statements, each of which it prepares once.
type engine interface {
	// runStatement returns how many rows a statement changed.
	runStatement(ctx context.Context, query string, args []any) (changed int64, err error)
	// queryRows calls see for every row of a query; reading.ErrStop ends it early.
	queryRows(ctx context.Context, see func(reading.Scan) error, query string, args []any) error
	close() error
}

// queries are the ways of running a statement.
type queries struct {
	engine engine
	watch  func(query string) // called before each run
}

// newQueries returns queries on an engine; watch may be nil.
func newQueries(on engine, watch func(query string)) *queries {
	if watch == nil {
		watch = func(string) {}
	}
	return &queries{engine: on, watch: watch}
}

func (q *queries) execOne(ctx context.Context, query string, args ...any) error {
	_, err := q.execChanged(ctx, query, args...)
	return err
}

// execChanged runs a statement and returns how many rows it changed.
func (q *queries) execChanged(ctx context.Context, query string, args ...any) (int64, error) {
	q.watch(query)
	return q.engine.runStatement(ctx, query, args)
}

// queryOne reads the only row of a query; found is false if there is none.
func (q *queries) queryOne(
	ctx context.Context, see func(reading.Scan) error, query string, args ...any,
) (found bool, err error) {
	return reading.One(ctx, q, see, query, args...)
}

// EachRow implements reading.Runner.
func (q *queries) EachRow(ctx context.Context, see func(reading.Scan) error, query string, args ...any) error {
	q.watch(query)
	return q.engine.queryRows(ctx, see, query, args)
}

func (q *queries) close() error { return q.engine.close() }

// pooled runs statements on a pool of connections. Safe for concurrent use.
type pooled struct {
	pool  *sql.DB
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

func newPooled(pool *sql.DB) *pooled { return &pooled{pool: pool, stmts: map[string]*sql.Stmt{}} }

func (p *pooled) prepareOnce(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stmt, ok := p.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := p.pool.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	p.stmts[query] = stmt
	return stmt, nil
}

// close drops the statements. Their pool is closed next, so errors are ignored.
func (p *pooled) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stmt := range p.stmts {
		_ = stmt.Close()
	}
	clear(p.stmts)
	return nil
}

func (p *pooled) runStatement(ctx context.Context, query string, args []any) (changed int64, err error) {
	stmt, err := p.prepareOnce(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (p *pooled) queryRows(ctx context.Context, see func(reading.Scan) error, query string, args []any) (err error) {
	stmt, err := p.prepareOnce(ctx, query) //nolint:sqlclosecheck // kept for the next run; close closes it
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := see(rows.Scan); err != nil {
			if errors.Is(err, reading.ErrStop) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}
