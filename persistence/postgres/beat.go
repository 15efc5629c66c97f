package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	beat = `UPDATE process SET until = ` + clockNow + ` + $2 WHERE id = $1 RETURNING 1`
	// overQuery lists the other processes whose life has ended.
	overQuery = `SELECT id, shared, host, pid, true FROM process WHERE until <= ` + clockNow + ` AND id <> $1`
	// lightly makes commits of a connection not wait for the disk. A beat that is lost in a crash of the server does no
	// harm.
	lightly = `SET synchronous_commit = off`
	// surely makes the transaction wait for it: a process whose registration is lost is taken for a buried one.
	surely = `SELECT set_config('synchronous_commit', 'on', true)`

	waitShortly = `SELECT set_config('lock_timeout', $1, true)`
	// stopChanges waits for running Changes of a process and blocks new ones.
	stopChanges = `SELECT pg_advisory_xact_lock(hashtextextended($1, 3))`
	// deleteProcess deletes a process whose life has ended, or any.
	deleteProcess = `WITH gone AS (DELETE FROM process WHERE id = $1 AND ($2 OR until <= ` + clockNow + `) RETURNING 1)
	SELECT must(EXISTS (SELECT 1 FROM gone), 'ZB003', 'the process lives, or was buried')`
	freeLanesOf = `UPDATE lane SET owner = '', until = 0, version = version + 1 WHERE owner <> '' AND owner = $1`
	// giveRows gives the open rows of a process to another one. For rows that were being sent, it is unknown whether
	// they arrived.
	giveRows = `UPDATE outbox SET owner = $2, ` + inDoubt + ` WHERE owner = $1 AND state IN ('pending', 'sending')`
	inDoubt  = `resent = CASE WHEN state = 'sending' AND resent = 0 THEN ` + clockNow + ` ELSE resent END`
	// heirQuery finds a process that takes over the work of another one.
	heirQuery = `SELECT id FROM process WHERE id <> $1 AND until > ` + clockNow + ` ORDER BY started, id LIMIT 1`
	noHeir    = `SELECT must(NOT EXISTS (SELECT 1 FROM process WHERE id <> $1 AND
		until > ` + clockNow + `), 'ZB001', 'a process was started')`
	// freeLeader frees what a process leads; see bot.LeaderBucket.
	freeLeader = `DELETE FROM fact WHERE bucket = 'leader' AND value = convert_to($1, 'UTF8')`
)

// bury adds the statements that end a process so that others can take over: they free its leases and what it leads, and
// charge what it had set aside. Its
// outbox rows go to an heir, or to the next process that starts. It can be repeated. If the process is still alive, it
// fails with codeLives, unless sure says that it is dead.
func bury(b *batch, id, heir string, sure bool) {
	b.do(waitShortly, buryingWaits)
	b.do(stopChanges, id)
	b.do(deleteProcess, id, sure)
	b.do(freeLanesOf, id)
	if heir != "" {
		b.do(giveRows, id, heir)
	}
	b.do(freeLeader, id)
	b.do(chargeHolds, id)
}

// hold is the membership of this process among those that use the database. It reports that the process is alive with
// each beat, on a connection of its own that waits for no other, and buries processes whose beats have stopped. Safe
// for concurrent use; conn and locked are used only by enlist, and after it by run.
type hold struct {
	me     process
	life   time.Duration
	reader *reader
	log    zerolog.Logger

	conn   *pgx.Conn // nil = not connected at the moment
	locked bool      // conn has holdLock
	steady time.Time // time since which no beat has failed

	last    atomic.Pointer[time.Time] // when the last beat that succeeded was sent
	older   atomic.Bool               // see Store.Older
	still   atomic.Bool               // no beats are sent; tests only
	buried  chan struct{}             // closed by end
	once    sync.Once                 // of buried
	leave   func()                    // ends the beats and removes this process from the list; set by start
	working sync.WaitGroup
	burying atomic.Bool // one burial at a time
}

func newHold(r *reader, options *Options) *hold {
	return &hold{me: myself(options), life: options.Life, reader: r, log: options.Log, buried: make(chan struct{})}
}

// connect opens the connection for the beats.
func (h *hold) connect(ctx context.Context) (err error) {
	h.locked = false
	if h.conn, err = pgx.ConnectConfig(ctx, h.reader.pool.Config().ConnConfig); err != nil {
		h.conn = nil
		return err
	}
	_, err = h.conn.Exec(ctx, lightly)
	return err
}

// disconnect closes the connection for the beats, which releases the lock.
func (h *hold) disconnect(ctx context.Context) {
	if h.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connecting)
	defer cancel()
	_ = h.conn.Close(ctx) // the server releases the lock when the connection ends, in whatever way
	h.conn, h.locked = nil, false
}

// start begins the beats, which continue until release.
func (h *hold) start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	beating, stop := context.WithCancel(ctx)
	h.working.Go(func() { h.run(beating) })
	h.leave = func() {
		stop()
		h.working.Wait()
		h.resign(ctx)
	}
}

func (h *hold) run(ctx context.Context) {
	ticker := time.NewTicker(h.life / beatsOfLife)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.buried:
			return
		case <-ticker.C:
		}
		if h.still.Load() {
			continue
		}
		err := h.beat(ctx)
		if err == nil {
			failing = false
			continue
		}
		if ctx.Err() == nil && !failing {
			h.log.Warn().Err(unavailable(h.reader.where, "write", err)).
				Msg("the server did not receive this process's beat; trying again")
			failing = true
		}
		h.steady = time.Time{}
		h.disconnect(ctx)
	}
}

// beat reports that this process is alive, and looks for processes that no longer are.
func (h *hold) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.life)
	defer cancel()
	if h.conn == nil {
		if err := h.connect(ctx); err != nil {
			return err
		}
	}
	if err := h.lock(ctx); err != nil {
		return err
	}
	from, lives := time.Now(), false
	var over []process
	b := &batch{}
	b.read(func(reading.Scan) error { lives = true; return nil }, beat, h.me.id, int64(h.life))
	b.read(func(scan reading.Scan) error {
		p, err := scanProcess(scan)
		over = append(over, p)
		return err
	}, overQuery, h.me.id)
	b.read(h.readOlder, olderQuery)
	if err := b.send(ctx, h.conn, func(string) {}); err != nil {
		return err
	}
	if !lives {
		h.end()
		return nil
	}
	h.beaten(from)
	// After an outage of the server, the lives of all processes have ended for a moment. The first one to reconnect
	// gives the others time.
	if len(over) > 0 && from.Sub(h.steady) >= h.life {
		h.buryAll(ctx, over)
	}
	return nil
}

func (h *hold) readOlder(scan reading.Scan) error {
	var older bool
	err := scan(&older)
	h.older.Store(older)
	return err
}

// beaten records a beat that succeeded.
func (h *hold) beaten(sent time.Time) {
	if h.steady.IsZero() {
		h.steady = sent
	}
	h.last.Store(&sent)
}

// alive reports whether the life granted by the last beat continues, with one beat in reserve. A suspended machine
// stops one clock, a changed time moves the other, so the later of the two counts.
func (h *hold) alive() bool {
	last := h.last.Load()
	now := time.Now()
	gone := max(now.Sub(*last), now.Round(0).Sub(last.Round(0)))
	return gone < h.life-h.life/beatsOfLife
}

// buryAll buries processes concurrently with the beats, which must not wait for it.
func (h *hold) buryAll(ctx context.Context, over []process) {
	if !h.burying.CompareAndSwap(false, true) {
		return
	}
	h.working.Go(func() {
		defer h.burying.Store(false)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answering)
		defer cancel()
		for _, p := range over {
			b := &batch{}
			b.do(sayLiving, h.me.id)
			bury(b, p.id, h.me.id, false)
			switch err := b.send(ctx, h.reader.pool, h.reader.told); {
			case err == nil:
				h.log.Warn().Str("process", p.where()).Msg("a process has died; taking over its work")
			case codeOf(err) == codeOusted:
				h.end()
				return
			case codeOf(err) != codeLives:
				h.log.Warn().Err(err).Str("process", p.where()).
					Msg("could not take over the work of a dead process; trying again")
			}
		}
	})
}

// end records that this process was buried.
func (h *hold) end() { h.once.Do(func() { close(h.buried) }) }

// release ends the beats and removes this process from the list, so that others take over its work immediately.
func (h *hold) release() {
	if h != nil {
		h.leave()
	}
}

// resign buries this process and closes its connection.
func (h *hold) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	err := h.quit(ctx)
	for tries := 0; codeOf(err) == codeStale && tries < meetings; tries++ { // the heir has died
		err = h.quit(ctx)
	}
	if err != nil && codeOf(err) != codeLives {
		h.log.Warn().Err(unavailable(h.reader.where, "write", err)).
			Msg("could not report the end of this process; others will notice when its beats stop")
	}
	h.disconnect(ctx)
}

// quit buries this process. If no other one is alive, a process starting at this moment must not miss its rows, so quit
// also waits for startLock.
func (h *hold) quit(ctx context.Context) error {
	heir := ""
	_, err := reading.One(ctx, h.reader, func(scan reading.Scan) error { return scan(&heir) }, heirQuery, h.me.id)
	if err != nil {
		return err
	}
	b := &batch{}
	b.do(lockStart, int64(startLock))
	if heir == "" {
		b.do(noHeir, h.me.id)
	} else {
		b.do(keepProcess, heir)
		b.do(stillLives, heir)
	}
	bury(b, h.me.id, heir, true)
	return b.send(ctx, h.reader.pool, h.reader.told)
}
