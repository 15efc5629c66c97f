package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/keeping"
)

// holdLock is the advisory lock of the process that has the database for itself.
const holdLock = 0x7a657068_00000002

// ending is for how long a start waits for a process that has just ended: the server notices a moment later.
const ending = 3 * time.Second

const (
	tryHold   = `SELECT pg_try_advisory_lock($1)`
	nameOwner = `INSERT INTO meta (name, value) VALUES ('owner', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	ownerSays = `SELECT must(EXISTS (SELECT 1 FROM meta WHERE name = 'owner' AND value = $1), 'ZB002', 'the database has another owner')`
	// freeLanes is for who has just taken the database: whoever else held a lease cannot store anything any more.
	freeLanes = `UPDATE lane SET owner = '', until = 0, version = version + 1 WHERE owner <> '' AND owner <> $1`
)

// hold says that this process has the database for itself, as the lock of a data directory does for SQLite. A lock keeps a second process from
// starting. When the connection that has the lock is lost, the name in the table decides: whoever wrote it last is the owner, and each Change of
// another one is refused.
type hold struct {
	owner string
	close func() // ends the connection that has the lock
}

// take takes the database for an owner; *keeping.Unavailable when another process has it.
func take(ctx context.Context, r *reader, owner string) (*hold, error) {
	conn, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig)
	if err != nil {
		return nil, unavailable(r.where, "open", err)
	}
	taken, err := hasLock(ctx, conn)
	if err != nil {
		return nil, errors.Join(unavailable(r.where, "open", err), conn.Close(ctx))
	}
	if !taken {
		err := &keeping.Unavailable{Path: r.where, Op: "open", Reason: "another running zephbot has this database; stop that one, or name another database"}
		return nil, errors.Join(err, conn.Close(ctx))
	}
	if _, err := conn.Exec(ctx, nameOwner, owner); err != nil {
		return nil, errors.Join(unavailable(r.where, "open", err), conn.Close(ctx))
	}
	return &hold{owner: owner, close: func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connecting)
		defer cancel()
		_ = conn.Close(ctx) // the server ends the lock with the connection, however that ends
	}}, nil
}

// hasLock takes the lock, and waits a little for a process that has just ended.
func hasLock(ctx context.Context, conn *pgx.Conn) (taken bool, err error) {
	wait := newPause(ending)
	for {
		if err := conn.QueryRow(ctx, tryHold, int64(holdLock)).Scan(&taken); err != nil || taken {
			return taken, err
		}
		if !wait.next(ctx) {
			return false, ctx.Err()
		}
	}
}

// guard makes a Change depend on the hold.
func (h *hold) guard(b *batch) { b.do(ownerSays, h.owner) }

// release lets another process have the database.
func (h *hold) release() {
	if h != nil {
		h.close()
	}
}

// Recover frees the leases of all other owners and returns how many there were. It is for the start of a process that has the database for itself:
// whoever else held a lease is dead, or can store nothing any more.
func (s *Store) Recover(ctx context.Context, owner string) (freed int64, err error) {
	if s.hold == nil {
		return 0, errors.New("free leases: the database is shared")
	}
	tag, err := s.pool.Exec(ctx, freeLanes, owner)
	if err != nil {
		return 0, fmt.Errorf("free leases: %w", unavailable(s.where, "write", err))
	}
	s.memory.drop()
	return tag.RowsAffected(), nil
}
