package sql

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"

	"github.com/pressly/goose/v3"

	"github.com/zephbot/zephbot/persistence/reading"
)

// OnWriter runs a statement on the writer's connection, outside any transaction: for limits that only the connection
// itself knows.
func (s *Store) OnWriter(ctx context.Context, statement string) error {
	return s.write.execOne(ctx, statement)
}

// Queued is the number of Changes that wait for the writer.
func (s *Store) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Upward is the part of a migration that is run.
var Upward = upwardPart

// Tell shows every statement of a store that nobody has used yet, with its arguments as the driver gets them, before it
// runs.
func (s *Store) Tell(tell func(query string, args []any)) {
	s.mu.Lock() // the writer looks for work behind it
	defer s.mu.Unlock()
	s.q.engine = told{s.q.engine, tell}
	s.write.engine = told{s.write.engine, tell}
}

// told is an engine that somebody listens to.
type told struct {
	engine
	tell func(query string, args []any)
}

func (e told) runStatement(ctx context.Context, query string, args []any) (int64, error) {
	e.tell(query, converted(args))
	return e.engine.runStatement(ctx, query, args)
}

func (e told) queryRows(ctx context.Context, see func(reading.Scan) error, query string, args []any) error {
	e.tell(query, converted(args))
	return e.engine.queryRows(ctx, see, query, args)
}

// converted are arguments as the driver gets them. What cannot be converted fails when the statement runs.
func converted(args []any) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if data, ok := value.([]byte); ok {
			value = bytes.Clone(data)
		}
		if err == nil {
			values[i] = value
		}
	}
	return values
}

// MigrateTo brings a database to a schema of the past, as a version of the program that knew no other did.
func MigrateTo(ctx context.Context, path string, version int64) (err error) {
	d := sqliteDialect(path)
	p, err := d.openPools(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.closePools()) }()
	steps, err := readMigrations(migrations, d.folder)
	if err != nil {
		return err
	}
	if _, err := p.write.ExecContext(ctx, "PRAGMA synchronous = OFF"); err != nil { // no power cut is tested here
		return err
	}
	provider, err := goose.NewProvider(d.engine, p.write, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return err
}

// FlushedAfterMigrate is how often the connection that has migrated a database flushes it: PRAGMA synchronous.
func FlushedAfterMigrate(ctx context.Context, path string) (level int, err error) {
	d := sqliteDialect(path)
	p, err := d.openPools(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.closePools()) }()
	if _, err := d.migrateSchema(ctx, p.write); err != nil {
		return 0, err
	}
	err = p.write.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&level)
	return level, err
}
