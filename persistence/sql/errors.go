package sql

import (
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/policy/reason"
)

// Unavailable says that the database does not work; see keeping.Unavailable.
type Unavailable = keeping.Unavailable

// sqliteReason explains an SQLite result code (sqlite.org/rescode.html); "" if one Change is at fault, not the
// database.
func sqliteReason(code int) reason.Code {
	switch code & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return ""
	case sqlite3.SQLITE_FULL:
		return reason.DiskFull
	case sqlite3.SQLITE_READONLY:
		return reason.DatabaseReadOnly
	case sqlite3.SQLITE_CORRUPT:
		return reason.DatabaseDamaged
	case sqlite3.SQLITE_NOTADB:
		return reason.DatabaseForeign
	case sqlite3.SQLITE_IOERR:
		return reason.DiskFails
	case sqlite3.SQLITE_CANTOPEN:
		return reason.DatabaseUnopened
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return reason.DatabaseDenied
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return reason.DatabaseBusy
	case sqlite3.SQLITE_NOMEM:
		return reason.MemoryShort
	default:
		return reason.DatabaseFailed
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
		if why := sqliteReason(failed.Code()); why != "" {
			return &Unavailable{Path: d.path, Op: op, Reason: reason.New(why), Err: err}
		}
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return &Unavailable{Path: d.path, Op: op, Reason: reason.New(reason.DatabaseLost), Err: err}
	}
	return err
}

// isFatal reports whether an error concerns the whole group and not one Change.
func (d *dialect) isFatal(err error) bool {
	var u *Unavailable
	return errors.As(d.wrapError("write", err), &u)
}
