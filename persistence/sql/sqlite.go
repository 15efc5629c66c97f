package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"github.com/zephbot/zephbot/policy/reason"
)

const (
	busyTimeout = "10000" // milliseconds; only another program (such as a backup) can cause a wait
	readers     = 4       // connections of the read pool
	// readCache is the cache of each connection: KiB, because it is negative (PRAGMA cache_size). The default of 2 MiB
	// would hold the same pages four times, which are also in the system's cache; what a turn needs of its session is
	// remembered above the store.
	readCache = "-512"
)

// dialect contains the differences between database engines.
type dialect struct {
	path    string // where the data is, for messages
	begin   string // opens a transaction that can write
	engine  goose.Dialect
	folder  string // of migrations
	dsn     func(readOnly bool) string
	driver  string
	prepare func() error // creates the place before the first connection
}

// pools are the connections: one for writing, several for reading.
type pools struct{ write, read *sql.DB }

func (p pools) closePools() error { return errors.Join(p.read.Close(), p.write.Close()) }

func sqliteDialect(path string) dialect {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return dialect{
		path:    path,
		begin:   "BEGIN IMMEDIATE",
		engine:  goose.DialectSQLite3,
		folder:  "migrations/sqlite",
		driver:  "sqlite",
		dsn:     func(readOnly bool) string { return sqliteDSN(path, readOnly) },
		prepare: func() error { return makeFile(path) },
	}
}

// sqliteDSN returns the DSN. WAL lets readers continue during writes; synchronous FULL makes each commit durable before
// it returns; secure_delete overwrites what is deleted in pages that are written anyway, and Scrub does the rest.
func sqliteDSN(path string, readOnly bool) string {
	pragmas := []string{
		"busy_timeout(" + busyTimeout + ")", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"secure_delete(FAST)",
	}
	if readOnly {
		pragmas = append(pragmas, "query_only(1)", "cache_size("+readCache+")")
	}
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	where.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": pragmas}.Encode()
	return where.String()
}

// makeFile creates a file that only its owner can read. SQLite gives the same mode to the files next to it.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("create the database file: %w", err)
	}
	err = file.Chmod(0o600)
	return errors.Join(err, file.Close())
}

// openPools connects both pools.
func (d *dialect) openPools(ctx context.Context) (pools, error) {
	if err := d.prepare(); err != nil {
		return pools{}, &Unavailable{
			Path: d.path, Op: "open",
			Reason: reason.Plain("the file cannot be created; check the directory and its permissions"), Err: err,
		}
	}
	write, err := sql.Open(d.driver, d.dsn(false))
	if err != nil {
		return pools{}, fmt.Errorf("open %s: %w", d.path, err)
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open(d.driver, d.dsn(true))
	if err != nil {
		return pools{}, errors.Join(fmt.Errorf("open %s: %w", d.path, err), write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	p := pools{write: write, read: read}
	if err := write.PingContext(ctx); err != nil {
		return pools{}, errors.Join(d.wrapError("open", err), p.closePools())
	}
	return p, nil
}
