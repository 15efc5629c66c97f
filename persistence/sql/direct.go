package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"

	"modernc.org/sqlite"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

// direct is a connection to the driver without the layer of database/sql. It is for one goroutine, and running
// statements cannot be cancelled.
type direct struct {
	conn  driver.Conn
	stmts map[string]statement
	args  []driver.NamedValue // of the running statement
	wrote bool                // rows were changed since this was last cleared
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func openDirect(dsn string) (*direct, error) {
	conn, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &direct{conn: conn, stmts: map[string]statement{}}, nil
}

// dataVersion returns a number that changes when a commit has changed the database, through this connection or another.
// It runs no statement. Commits of others count from the next transaction on.
func (d *direct) dataVersion() (uint32, error) {
	file, ok := d.conn.(sqlite.FileControl)
	if !ok {
		return 0, fmt.Errorf("the driver's %T does not report writes of others", d.conn)
	}
	version, err := file.FileControlDataVersion("main")
	if err != nil {
		return 0, fmt.Errorf("check for other writers: %w", err)
	}
	return version, nil
}

// prepareOnce prepares a statement once.
func (d *direct) prepareOnce(query string) (statement, error) {
	if stmt, ok := d.stmts[query]; ok {
		return stmt, nil
	}
	prepared, err := d.conn.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	stmt, ok := prepared.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("prepare: the driver's %T cannot be executed", prepared), prepared.Close())
	}
	d.stmts[query] = stmt
	return stmt, nil
}

// bindArgs converts the arguments of a statement to the driver's types.
func (d *direct) bindArgs(args []any) ([]driver.NamedValue, error) {
	d.args = d.args[:0]
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	return d.args, nil
}

func (d *direct) runStatement(ctx context.Context, query string, args []any) (changed int64, err error) {
	stmt, err := d.prepareOnce(query)
	if err != nil {
		return 0, err
	}
	values, err := d.bindArgs(args)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, values)
	if err != nil {
		return 0, err
	}
	if changed, err = result.RowsAffected(); err != nil {
		return 0, err
	}
	d.wrote = d.wrote || changed > 0
	return changed, nil
}

func (d *direct) queryRows(ctx context.Context, see func(reading.Scan) error, query string, args []any) (err error) {
	stmt, err := d.prepareOnce(query)
	if err != nil {
		return err
	}
	values, err := d.bindArgs(args)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, values)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	scan := func(dests ...any) error { return assignColumns(dests, row) }
	for {
		if err := rows.Next(row); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := see(scan); err != nil {
			if errors.Is(err, reading.ErrStop) {
				return nil
			}
			return err
		}
	}
}

// close closes the connection in whatever state it is.
func (d *direct) close() error {
	var errs []error
	for _, stmt := range d.stmts {
		errs = append(errs, stmt.Close())
	}
	clear(d.stmts)
	return errors.Join(append(errs, d.conn.Close())...)
}

// assignColumns copies the columns of a row to their destinations.
func assignColumns(dests []any, row []driver.Value) error {
	if len(dests) != len(row) {
		return fmt.Errorf("a row has %d columns, want %d", len(row), len(dests))
	}
	for i, dest := range dests {
		if !assignOne(dest, row[i]) {
			if scanner, ok := dest.(sql.Scanner); ok {
				if err := scanner.Scan(row[i]); err != nil {
					return fmt.Errorf("column %d: %w", i, err)
				}
				continue
			}
			return fmt.Errorf("column %d: %T does not fit into %T", i, row[i], dest)
		}
	}
	return nil
}

func assignOne(dest any, value driver.Value) bool {
	switch d := dest.(type) {
	case *any:
		*d = value
		return true
	case *[]byte:
		if value == nil {
			*d = nil
			return true
		}
		data, ok := value.([]byte)
		*d = data
		return ok
	}
	switch v := value.(type) {
	case int64:
		switch d := dest.(type) {
		case *int64:
			*d = v
			return true
		case *int:
			*d = int(v)
			return true
		case *bool:
			*d = v != 0
			return true
		}
	case string:
		switch d := dest.(type) {
		case *string:
			*d = v
			return true
		case *bot.SessionKey:
			*d = bot.SessionKey(v)
			return true
		}
		// A named type.
		if d := reflect.ValueOf(dest); d.Kind() == reflect.Pointer && d.Elem().Kind() == reflect.String {
			d.Elem().SetString(v)
			return true
		}
	}
	return false
}
