package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
)

const (
	beat = `UPDATE process SET until = ` + clockNow + ` + $2 WHERE id = $1 RETURNING 1`
	// overQuery lists the others whose life has ended.
	overQuery = `SELECT id, shared, host, pid, true FROM process WHERE until <= ` + clockNow + ` AND id <> $1`
	// lightly makes the commits of a connection wait for no disk: a beat that a crash of the server loses is nothing
	// that anybody misses.
	lightly = `SET synchronous_commit = off`

	waitShortly = `SELECT set_config('lock_timeout', $1, true)`
	// stopChanges waits for the Changes of a process that are under way, and lets no other begin.
	stopChanges = `SELECT pg_advisory_xact_lock(hashtextextended($1, 3))`
	// deleteProcess buries one whose life has ended, or any.
	deleteProcess = `WITH gone AS (DELETE FROM process WHERE id = $1 AND ($2 OR until <= ` + clockNow + `) RETURNING 1)
	SELECT must(EXISTS (SELECT 1 FROM gone), 'ZB003', 'the process lives, or was buried')`
	freeLanesOf = `UPDATE lane SET owner = '', until = 0, version = version + 1 WHERE owner <> '' AND owner = $1`
	// freeLeader ends what a process leads; see bot.LeaderBucket.
	// giveRows gives the open rows of a process to another one. Of what was being sent nobody knows whether it arrived.
	giveRows = `UPDATE outbox SET owner = $2, ` + inDoubt + ` WHERE owner = $1 AND state IN ('pending', 'sending')`
	inDoubt  = `resent = CASE WHEN state = 'sending' AND resent = 0 THEN ` + clockNow + ` ELSE resent END`
	// heirQuery finds a process that goes on with what another one has.
	heirQuery  = `SELECT id FROM process WHERE id <> $1 AND until > ` + clockNow + ` ORDER BY started, id LIMIT 1`
	noHeir     = `SELECT must(NOT EXISTS (SELECT 1 FROM process WHERE id <> $1 AND until > ` + clockNow + `), 'ZB001', 'a process was started')`
	freeLeader = `DELETE FROM fact WHERE bucket = 'leader' AND value = convert_to($1, 'UTF8')`
)

// bury adds the statements that end what a process has, so that others find it: its leases and what it leads. Its rows
// of the outbox go to an heir; without one, the next process that is started takes them. It may be repeated. Where the
// process still lives it fails with codeLives, unless sure says that it is dead.
func bury(b *batch, id, heir string, sure bool) {
	b.do(waitShortly, buryingWaits)
	b.do(stopChanges, id)
	b.do(deleteProcess, id, sure)
	b.do(freeLanesOf, id)
	if heir != "" {
		b.do(giveRows, id, heir)
	}
	b.do(freeLeader, id)
}

// hold is the place of this process among those that work on the database. It says with each beat that it lives, on a
// connection of its own, which waits for no other, and buries processes whose beats have stopped. Safe for concurrent
// use; conn and locked belong to enlist, and then to run.
type hold struct {
	me     process
	life   time.Duration
	reader *reader
	log    zerolog.Logger

	conn   *pgx.Conn // nil: none at the moment
	locked bool      // conn has holdLock
	steady time.Time // since when no beat has failed

	last    atomic.Pointer[time.Time] // when the last beat that the server took was sent
	still   atomic.Bool               // beats are left out; tests only
	buried  chan struct{}             // closed by end
	once    sync.Once                 // of buried
	leave   func()                    // ends the beats and takes this process off the list; set by start
	working sync.WaitGroup
	burying atomic.Bool // one burial at a time
}

func newHold(r *reader, options *Options) *hold {
	return &hold{me: myself(options), life: options.Life, reader: r, log: options.Log, buried: make(chan struct{})}
}

// connect makes the connection of the beats.
func (h *hold) connect(ctx context.Context) (err error) {
	h.locked = false
	if h.conn, err = pgx.ConnectConfig(ctx, h.reader.pool.Config().ConnConfig); err != nil {
		h.conn = nil
		return err
	}
	_, err = h.conn.Exec(ctx, lightly)
	return err
}

// disconnect ends the connection of the beats, and with it the lock.
func (h *hold) disconnect(ctx context.Context) {
	if h.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connecting)
	defer cancel()
	_ = h.conn.Close(ctx) // the server ends the lock with the connection, however that ends
	h.conn, h.locked = nil, false
}

// start begins the beats, which go on until release.
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
			h.log.Warn().Err(unavailable(h.reader.where, "write", err)).Msg("the server does not hear that this process lives; tried again")
			failing = true
		}
		h.steady = time.Time{}
		h.disconnect(ctx)
	}
}

// beat says that this process lives, and looks for others that do not any more.
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
	b.read(func(row) error { lives = true; return nil }, beat, h.me.id, int64(h.life))
	b.read(func(r row) error {
		p, err := scanProcess(r)
		over = append(over, p)
		return err
	}, overQuery, h.me.id)
	if err := b.send(ctx, h.conn, func(string) {}); err != nil {
		return err
	}
	if !lives {
		h.end()
		return nil
	}
	h.beaten(from)
	// After an outage of the server everybody's life is over for a moment: who comes back first gives the others time.
	if len(over) > 0 && from.Sub(h.steady) >= h.life {
		h.buryAll(ctx, over)
	}
	return nil
}

// beaten notes a beat that the server took.
func (h *hold) beaten(sent time.Time) {
	if h.steady.IsZero() {
		h.steady = sent
	}
	h.last.Store(&sent)
}

// alive says whether the life that the last beat has brought goes on, with a beat to spare. A machine that slept stops
// one clock, one that is set moves the other: the later of the two counts.
func (h *hold) alive() bool {
	last := h.last.Load()
	now := time.Now()
	gone := max(now.Sub(*last), now.Round(0).Sub(last.Round(0)))
	return gone < h.life-h.life/beatsOfLife
}

// buryAll buries processes beside the beats, which must not wait for it.
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
				h.log.Warn().Str("process", p.where()).Msg("a process has died; its work is taken over")
			case codeOf(err) == codeOusted:
				h.end()
				return
			case codeOf(err) != codeLives:
				h.log.Warn().Err(err).Str("process", p.where()).Msg("a process that has died is not buried; tried again")
			}
		}
	})
}

// end notes that this process was buried.
func (h *hold) end() { h.once.Do(func() { close(h.buried) }) }

// release ends the beats and takes this process off the list, so that others go on with its work at once.
func (h *hold) release() {
	if h != nil {
		h.leave()
	}
}

// resign buries this process and ends its connection.
func (h *hold) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	err := h.quit(ctx)
	for tries := 0; codeOf(err) == codeStale && tries < meetings; tries++ { // the heir has died
		err = h.quit(ctx)
	}
	if err != nil && codeOf(err) != codeLives {
		h.log.Warn().Err(unavailable(h.reader.where, "write", err)).Msg("others learn only from its silence that this process has ended")
	}
	h.disconnect(ctx)
}

// quit buries this process. Where no other one lives, none that starts at this moment misses its rows: it waits for
// startLock too.
func (h *hold) quit(ctx context.Context) error {
	heir := ""
	_, err := one(ctx, h.reader, func(r row) error { return r.Scan(&heir) }, heirQuery, h.me.id)
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
