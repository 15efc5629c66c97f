package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
	"github.com/zephbot/zephbot/policy/reason"
)

// life is how long a process counts as alive after its last beat, unless Options.Life says otherwise. Together with two
// looks, for the process and for its work, it stays below 5 s.
const life = 3 * time.Second

// Fractions of a life.
const (
	beatsOfLife = 6 // beats per life: some can fail
	// A start waits for a life plus ending for a process that has just ended, because the server notices a moment
	// later.
	ending       = 500 * time.Millisecond
	buryingWaits = "2s" // for running Changes of the dead process; the next beat tries again
)

// Advisory locks.
const (
	// holdLock is held while connected: exclusively by a process that does not share the database, shared by those that
	// do.
	holdLock = 0x7a657068_00000002
	// startLock serialises the decisions of processes that start.
	startLock = 0x7a657068_00000003
)

const (
	lockAlone  = `SELECT pg_try_advisory_lock($1)`
	lockShared = `SELECT pg_try_advisory_lock_shared($1)`
	lockStart  = `SELECT pg_advisory_xact_lock($1)`

	// nameOwner prevents versions that do not know the table of processes from storing anything.
	nameOwner = `INSERT INTO meta (name, value) VALUES ('owner', $1) ON CONFLICT (name) DO UPDATE
		SET value = excluded.value`

	register = `INSERT INTO process (id, until, shared, started, host, pid, ledger)
		VALUES ($1, ` + clockNow + ` + $2, $3, ` + clockNow + `, $4, $5, true)`
	// olderQuery reports whether a process lives that does not know the table of what is set aside.
	olderQuery = `SELECT EXISTS (SELECT 1 FROM process WHERE NOT ledger)`
	// standing lists all processes and whether their lives have ended.
	standing = `SELECT id, shared, host, pid, until <= ` + clockNow + ` FROM process ORDER BY started, id`
	clockNow = `(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`

	// takeRows takes the open rows of processes that no longer exist.
	takeRows = `UPDATE outbox SET owner = $1, ` + inDoubt + ` WHERE state IN ('pending', 'sending') AND owner <> $1
	AND NOT EXISTS (SELECT 1 FROM process WHERE id = outbox.owner)`

	sayLiving   = `SELECT living($1)`
	livingQuery = `SELECT id FROM process ORDER BY id`
	// freeLanes frees leases of processes that no longer exist and cannot store anything any more.
	freeLanes = `UPDATE lane SET owner = '', until = 0, version = version + 1
	WHERE owner <> '' AND owner <> $1 AND NOT EXISTS (SELECT 1 FROM process WHERE id = lane.owner)`
	// freeLeaders frees what such processes lead, and the locks that they held; see bot.LeaderBucket. A burial does
	// that too, but a database that was restored names processes that nobody buries.
	freeLeaders = `DELETE FROM fact WHERE bucket = 'leader' AND value <> convert_to($1, 'UTF8')
	AND NOT EXISTS (SELECT 1 FROM process WHERE convert_to(id, 'UTF8') = fact.value)`
)

// process is one of those that use the database.
type process struct {
	id     string
	shared bool
	host   string
	pid    int
	over   bool // its life has ended, but it is not buried yet
}

func scanProcess(scan reading.Scan) (p process, err error) {
	return p, scan(&p.id, &p.shared, &p.host, &p.pid, &p.over)
}

// where describes the process to people.
func (p *process) where() string { return fmt.Sprintf("process %d on %s", p.pid, p.host) }

// admit returns the processes that are dead before this one begins, or why this one must not start. free says that this
// one got the lock: then no process is connected that does not share the database with it.
func (p *process) admit(others []process, free bool) (dead []process, refused string) {
	const advice = "another running zephbot has this database"
	stranger := !free // a version that does not know the table of processes
	for _, other := range others {
		together := p.shared && other.shared
		switch {
		case other.over, free && !together:
			stranger = false
			dead = append(dead, other)
		case together:
		case p.shared:
			return nil, fmt.Sprintf("%s for itself (%s); let both share it, or stop that one", advice, other.where())
		case other.shared:
			return nil, fmt.Sprintf("%s and shares it (%s), which this one does not; "+
				"let this one share it too, or name another database", advice, other.where())
		default:
			return nil, fmt.Sprintf("%s (%s); stop that one, or name another database", advice, other.where())
		}
	}
	if stranger {
		return nil, advice + "; stop that one, or name another database"
	}
	return dead, ""
}

// enlist registers this process with the database. It fails with *keeping.Unavailable if other processes use it that do
// not share it with this one.
func enlist(ctx context.Context, r *reader, options *Options) (*hold, error) {
	h := newHold(r, options)
	wait := newPause(h.life + ending)
	for {
		refused, err := h.enter(ctx)
		// The others may end soon, or another process buried one of them at this moment.
		if (refused != "" || codeOf(err) == codeLives) && wait.next(ctx) {
			continue
		}
		switch {
		case err == nil && refused == "":
			h.start(ctx)
			return h, nil
		case err == nil && ctx.Err() != nil:
			err = ctx.Err()
		case err == nil:
			err = &keeping.Unavailable{Path: r.where, Op: "open", Reason: reason.Plain(refused)}
		}
		h.disconnect(ctx)
		return nil, unavailable(r.where, "open", err)
	}
}

// enter tries once to become one of the processes. refused says which process prevents it.
func (h *hold) enter(ctx context.Context) (refused string, err error) {
	if h.conn == nil {
		if err := h.connect(ctx); err != nil {
			return "", err
		}
	}
	tx, err := h.conn.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, h.undo(ctx, tx)) }()
	if _, err := tx.Exec(ctx, lockStart, int64(startLock)); err != nil {
		return "", err
	}
	if err := h.lock(ctx); err != nil {
		return "", err
	}
	rows, err := tx.Query(ctx, standing)
	if err != nil {
		return "", err
	}
	var others []process
	if err := eachRow(rows, func(scan reading.Scan) error {
		p, err := scanProcess(scan)
		others = append(others, p)
		return err
	}); err != nil {
		return "", err
	}
	dead, refused := h.me.admit(others, h.locked)
	if refused != "" {
		return refused, nil
	}
	b := &batch{}
	b.do(surely)
	for _, p := range dead {
		bury(b, p.id, "", true)
	}
	b.do(nameOwner, h.me.id)
	b.do(register, h.me.id, int64(h.life), h.me.shared, h.me.host, h.me.pid)
	b.do(takeRows, h.me.id)
	b.read(h.readOlder, olderQuery)
	from := time.Now()
	if err := b.send(ctx, h.conn, h.reader.told); err != nil {
		return "", err
	}
	if err := tx.Commit(ctx); err != nil {
		return "", err
	}
	for _, p := range dead {
		h.log.Info().Str("process", p.where()).Msg("took over the work of a process that ended early")
	}
	h.beaten(from)
	return "", nil
}

// undo rolls back a transaction that was not committed.
func (h *hold) undo(ctx context.Context, tx pgx.Tx) error {
	if err := tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) && !h.conn.IsClosed() {
		return err
	}
	return nil
}

// lock takes the lock of connected processes if it is available and this process does not have it.
func (h *hold) lock(ctx context.Context) error {
	if h.locked {
		return nil
	}
	query := lockAlone
	if h.me.shared {
		query = lockShared
	}
	return h.conn.QueryRow(ctx, query, int64(holdLock)).Scan(&h.locked)
}

// myself describes this process to others.
func myself(options *Options) process {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return process{id: options.Owner, shared: options.Shared, host: host, pid: os.Getpid()}
}

// guard makes a Change, until it is committed, depend on this process being registered.
func (h *hold) guard(b *batch) {
	if h != nil {
		b.do(sayLiving, h.me.id)
	}
}

// Recover frees the leases of processes that no longer exist and returns how many there were, charges what such
// processes had set aside, and frees what they lead or have locked (bot.LeaderBucket). It is called at the start.
func (s *Store) Recover(ctx context.Context, owner string) (freed int64, err error) {
	if s.hold == nil {
		return 0, errors.New("free leases: nobody knows which processes live")
	}
	tag, err := s.pool.Exec(ctx, freeLanes, owner)
	if err == nil {
		_, err = s.pool.Exec(ctx, chargeLost)
	}
	if err != nil {
		return 0, fmt.Errorf("free leases: %w", unavailable(s.where, "write", err))
	}
	if _, err := s.pool.Exec(ctx, freeLeaders, owner); err != nil {
		return 0, fmt.Errorf("free locks: %w", unavailable(s.where, "write", err))
	}
	s.memory.drop()
	return tag.RowsAffected(), nil
}

// Living lists the processes that use the database by name, including this one. A dead process is listed until it is
// buried.
func (s *Store) Living(ctx context.Context) ([]string, error) {
	names, err := reading.List(ctx, &s.reader, text[string], livingQuery)
	return names, s.problem("list processes", err)
}

// Alive reports whether this process can be sure that no other one has taken over its work, without asking the server.
// An irreversible action that is not a Change, such as a request to another service, may begin only while it returns
// true.
func (s *Store) Alive() bool { return s.hold == nil || s.hold.alive() }

// Older reports whether a process lives, as of the last beat, of a version that does not know bot.Ledger.
func (s *Store) Older() bool { return s.hold != nil && s.hold.older.Load() }

// Buried is closed when this process has been buried: another one has taken over its work, and Apply rejects everything
// with keeping.ErrBuried.
func (s *Store) Buried() <-chan struct{} {
	if s.hold == nil {
		return nil
	}
	return s.hold.buried
}
