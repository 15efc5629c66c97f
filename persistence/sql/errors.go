package sql

import (
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/zephbot/zephbot/persistence/keeping"
)

// Unavailable says that the database does not work; see keeping.Unavailable.
type Unavailable = keeping.Unavailable

// sqliteReason explains an SQLite result code (sqlite.org/rescode.html); "" if one Change is at fault, not the
// database.
func sqliteReason(code int) string {
	switch code & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return ""
	case sqlite3.SQLITE_FULL:
		return "the disk is full; free some space, nothing was stored"
	case sqlite3.SQLITE_READONLY:
		return "the database cannot be written; check owner and permissions of the file and its directory"
	case sqlite3.SQLITE_CORRUPT:
		return "the database is damaged; stop the program and restore a backup"
	case sqlite3.SQLITE_NOTADB:
		return "the file is not a database; move it away or restore a backup"
	case sqlite3.SQLITE_IOERR:
		return "the disk reports an error; check the disk"
	case sqlite3.SQLITE_CANTOPEN:
		return "the file cannot be opened; check that the directory exists and may be written"
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "access to the database is denied; check owner and permissions of the file"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the database; close it"
	case sqlite3.SQLITE_NOMEM:
		return "there is not enough memory"
	default:
		return "the database failed"
	}
}

// wrapError converts a driver's error to *Unavailable. Other errors are returned unchanged.
func (d *dialect) wrapError(op string, err error) error {
	var failed *sqlite.Error
	var already *Unavailable
	switch {
	case err == nil, errors.As(err, &already):
		return err
	case errors.As(err, &failed):
		if reason := sqliteReason(failed.Code()); reason != "" {
			return &Unavailable{Path: d.path, Op: op, Reason: reason, Err: err}
		}
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return &Unavailable{Path: d.path, Op: op, Reason: "the connection to the database was lost", Err: err}
	}
	return err
}

// isFatal reports whether an error concerns the whole group and not one Change.
func (d *dialect) isFatal(err error) bool {
	var u *Unavailable
	return errors.As(d.wrapError("write", err), &u)
}
