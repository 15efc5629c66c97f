package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/policy/reason"
)

// Codes raised by the schema's function must. PostgreSQL does not use class ZB.
const (
	codeStale  = "ZB001" // the remembered state is out of date
	codeOusted = "ZB002" // this process was buried
	codeLives  = "ZB003" // a process is alive, or was buried already
)

// Codes of PostgreSQL (Appendix A of its documentation).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	lockNotAvailable     = "55P03"
	readOnlyServer       = "25006"
)

// codeOf returns the SQLSTATE of an error; "" if it does not come from the server.
func codeOf(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// fate is what is known about a transaction that failed.
type fate int

const (
	refused fate = iota // the server rolled it back, and would do so again
	again               // the server rolled it back, but a retry may succeed
	away                // the server is unavailable; nothing was changed
	unknown             // the answer was lost: it may have been committed
)

// fateOf interprets an error of a whole transaction.
func fateOf(err error) fate {
	code := codeOf(err)
	switch {
	case code == codeStale, code == serializationFailure,
		code == deadlockDetected, code == uniqueViolation, code == lockNotAvailable:
		return again
	case code == readOnlyServer:
		return away
	case len(code) == 5:
		return fateOfClass(code[:2])
	case isConnectError(err), pgconn.SafeToRetry(err):
		return away
	case isLost(err):
		return unknown
	}
	return refused
}

// fateOfClass interprets a class of codes. A server that shuts down may have committed without answering.
func fateOfClass(class string) fate {
	switch class {
	case "08", "57", "58", "XX":
		return unknown
	case "53", "28", "3D":
		return away
	}
	return refused
}

func isConnectError(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// isLost reports whether an error comes from the connection and not from the server.
func isLost(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network)
}

// buriedText is the message for a process that was buried.
const buriedText = "another zephbot has taken over this one's work, because this one was not heard from for a while " +
	"or the other was started in parallel; restart this one"

// serverReason says what is wrong with the server; "" if the request is at fault.
func serverReason(err error) string {
	code := codeOf(err)
	switch code {
	case readOnlyServer:
		return "the server is read-only; it may be a replica, or its disk may be full: " +
			"name the primary in database.url"
	case "53100":
		return "the server's disk is full; free some space, nothing was stored"
	case "53300":
		return "the server has no connections left; raise its max_connections, or lower pool_max_conns in database.url"
	case "28P01", "28000":
		return "the server rejects the user or the password of database.url"
	case "3D000":
		return "the database of database.url does not exist; create it"
	case "42501":
		return "the user of database.url lacks a permission; grant it all rights on the database"
	case codeOusted:
		return buriedText
	}
	switch {
	case fateOf(err) == unknown:
		return "the connection to the server was lost"
	case fateOf(err) == away, code != "" && fateOfClass(code[:2]) != refused:
		return "the server cannot be reached; check that it runs and that database.url names it"
	}
	return ""
}

// unavailable converts an error that concerns the server to *keeping.Unavailable; other errors are returned unchanged.
// What pgx reports about a failed connection includes the user and the host, never the password.
func unavailable(where, op string, err error) error {
	var already *keeping.Unavailable
	if err == nil || errors.As(err, &already) {
		return err
	}
	if codeOf(err) == codeOusted {
		err = fmt.Errorf("%w: %w", keeping.ErrBuried, err)
	}
	if text := serverReason(err); text != "" {
		return &keeping.Unavailable{Path: where, Op: op, Reason: reason.Plain(text), Err: err}
	}
	return err
}
