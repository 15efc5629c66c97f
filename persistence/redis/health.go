package redis

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

const (
	// patience limits one operation, including its retry. A turn waits for it.
	patience = 2 * time.Second
	// fair is how long an operation that its caller cancelled must have waited to count as the server's fault.
	fair = 500 * time.Millisecond
	// rest is the pause after a server did not answer in time: operations fail immediately rather than wait too.
	rest = time.Second
)

// State is the result of the last operation on the server.
type State string

// The states.
const (
	Fine     State = "ok"
	Slow     State = "slow"      // connected, but no answer in time
	Away     State = "away"      // no connection, or a server that is starting or has lost its cluster
	ReadOnly State = "read-only" // answers but rejects writes: a replica, or memory or disk is full
	Refused  State = "refused"   // rejects the password, or the user lacks a permission
)

// Health is a state and when it began.
type Health struct {
	State State
	Since time.Time
}

// errResting is returned instead of calling a server during the pause.
var errResting = errors.New("redis is paused because it did not answer in time")

// watch observes the result of every operation. Safe for concurrent use.
type watch struct {
	log zerolog.Logger

	mu     sync.Mutex
	health Health
	until  time.Time // the server is not called before this time
	calls  Calls
}

// Calls counts operations since the start, each of which is one round trip.
type Calls struct {
	OK     uint64
	Failed uint64 // without those that were not sent because the server is paused
}

// Calls counts the operations.
func (w *watch) Calls() Calls {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

func newWatch(log zerolog.Logger) *watch {
	return &watch{log: log, health: Health{State: Fine, Since: time.Now()}}
}

// Health implements engine.
func (w *watch) Health() Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}

// runOp runs an operation, limited by patience.
func (w *watch) runOp(ctx context.Context, op func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.isResting() {
		return errResting
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := op(limited)
	switch {
	case err == nil || ctx.Err() == nil:
		w.noteResult(err)
	case time.Since(began) >= fair: // the caller gave up after waiting
		w.noteResult(context.DeadlineExceeded)
	}
	return err
}

// probeServer runs an operation even during the pause.
func (w *watch) probeServer(ctx context.Context, op func(ctx context.Context) error) error {
	w.mu.Lock()
	w.until = time.Time{}
	w.mu.Unlock()
	return w.runOp(ctx, op)
}

func (w *watch) isResting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.until)
}

// noteResult updates the state and logs a change.
func (w *watch) noteResult(err error) {
	state, now := stateOf(err), time.Now()
	w.mu.Lock()
	before := w.health
	if state == Fine {
		w.calls.OK++
	} else {
		w.calls.Failed++
	}
	if state == Slow {
		w.until = now.Add(rest)
	}
	if state != before.State {
		w.health = Health{State: state, Since: now}
	}
	w.mu.Unlock()
	switch {
	case state == before.State:
	case state == Fine:
		w.log.Info().Str("was", string(before.State)).Dur("for", now.Sub(before.Since)).Msg("redis works again")
	default:
		w.log.Warn().Err(err).Str("state", string(state)).Msg("redis does not work")
	}
}

// stateOf derives the state of the server from the result of an operation.
func stateOf(err error) State {
	_, replied := errors.AsType[goredis.Error](err)
	late, timed := errors.AsType[net.Error](err)
	switch {
	case err == nil, errors.Is(err, goredis.Nil):
		return Fine
	case goredis.IsAuthError(err), goredis.IsPermissionError(err):
		return Refused
	case goredis.IsReadOnlyError(err), goredis.IsOOMError(err),
		goredis.IsNoReplicasError(err), goredis.HasErrorPrefix(err, "MISCONF"):
		return ReadOnly
	case goredis.IsLoadingError(err), goredis.IsClusterDownError(err),
		goredis.IsMasterDownError(err), goredis.IsMaxClientsError(err):
		return Away
	case replied: // it works; the error is about something else
		return Fine
	case isDialing(err):
		return Away
	case errors.Is(err, context.DeadlineExceeded), timed && late.Timeout():
		return Slow
	default:
		return Away
	}
}

func isDialing(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
