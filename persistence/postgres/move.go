package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The queries of a move. Those that list keys take the bounds of the keys of the channel and bot last.
const (
	lanesFrom   = `SELECT session FROM lane WHERE session >= $1 AND session < $2 ORDER BY session`
	deleteLane  = `DELETE FROM lane WHERE session = $1`
	liftJournal = `UPDATE journal SET session = $1, n = -(n + $2) WHERE session = $3`
	landJournal = `UPDATE journal SET n = -n WHERE session = $1 AND n < 0`

	withdrawAll = `UPDATE approval SET state = 'cancelled', decided = $1 WHERE state = 'pending' AND session = $2`
	endArrival  = `UPDATE inbox SET state = 'done', finished = $1 WHERE seq = $2 AND state = 'waiting'`

	queuedFrom = `SELECT DISTINCT session FROM inbox WHERE state = 'waiting' AND NOT express AND session <> ''
		AND session >= $1 AND session < $2`
	queuedMove = `UPDATE inbox SET session = $1 WHERE state = 'waiting' AND NOT express AND session <> ''
		AND session = $2`
	expressFrom = `SELECT DISTINCT session FROM inbox WHERE state = 'waiting' AND (express OR session = '')
		AND session >= $1 AND session < $2`
	expressMove = `UPDATE inbox SET session = $1 WHERE state = 'waiting' AND (express OR session = '') AND session = $2`
	deadFrom    = `SELECT DISTINCT session FROM inbox WHERE state = 'dead' AND session >= $1 AND session < $2`
	deadMove    = `UPDATE inbox SET session = $1 WHERE state = 'dead' AND session = $2`

	approvalsFrom = `SELECT DISTINCT session FROM approval WHERE session >= $1 AND session < $2`
	approvalsMove = `UPDATE approval SET session = $1 WHERE session = $2`
	approvalsChat = `UPDATE approval SET chat = $1 WHERE channel = $2 AND bot = $3 AND chat = $4`

	rowsFrom = `SELECT DISTINCT session FROM outbox WHERE session >= $1 AND session < $2`
	rowsMove = `UPDATE outbox SET session = $1 WHERE session = $2`
	rowsChat = `UPDATE outbox SET chat = $1, message = '', edit = '', reply_to = '' WHERE channel = $2
		AND bot = $3 AND chat = $4`
	outputsFrom  = `SELECT DISTINCT session FROM tool_overflow WHERE session >= $1 AND session < $2`
	moveOverflow = `UPDATE tool_overflow SET session = $1 WHERE session = $2`
	refsFrom     = `SELECT DISTINCT session FROM blob_ref WHERE session >= $1 AND session < $2`
	moveRefs     = `WITH gone AS (DELETE FROM blob_ref WHERE session = $2 RETURNING blob, used)
	INSERT INTO blob_ref (session, blob, used) SELECT $1, blob, used FROM gone ON CONFLICT (session, blob) DO UPDATE
	SET used = excluded.used`

	bucketsQuery = `WITH RECURSIVE buckets (bucket) AS (
	SELECT MIN(bucket) FROM fact UNION ALL SELECT (SELECT MIN(fact.bucket) FROM fact
	WHERE fact.bucket > buckets.bucket) FROM buckets WHERE bucket IS NOT NULL
) SELECT bucket FROM buckets WHERE bucket IS NOT NULL`
	factsFrom = `SELECT key FROM fact WHERE bucket = $1 AND key >= $2 AND key < $3`
	factsMove = `INSERT INTO fact (bucket, key, value, expires) SELECT bucket, $1, value, expires FROM fact
		WHERE bucket = $2 AND key = $3
ON CONFLICT (bucket, key) DO NOTHING`

	daysQuery = `WITH RECURSIVE days (day) AS (
	SELECT MIN(day) FROM charge UNION ALL SELECT (SELECT MIN(charge.day) FROM charge WHERE charge.day > days.day)
	FROM days WHERE day IS NOT NULL
) SELECT day FROM days WHERE day IS NOT NULL`
	chargesFrom   = `SELECT DISTINCT scope FROM charge WHERE day = $1 AND scope >= $2 AND scope < $3`
	chargesMove   = `UPDATE charge SET scope = $1 WHERE day = $2 AND scope = $3`
	usedDaysQuery = `WITH RECURSIVE days (day) AS (
	SELECT MIN(day) FROM usage UNION ALL SELECT (SELECT MIN(usage.day) FROM usage WHERE usage.day > days.day)
	FROM days WHERE day IS NOT NULL
) SELECT day FROM days WHERE day IS NOT NULL`
	usageFrom = `SELECT DISTINCT scope FROM usage WHERE day = $1 AND scope >= $2 AND scope < $3`
	usageMove = `INSERT INTO usage (day, scope, unit, n) SELECT day, $1, unit, n FROM usage WHERE day = $2
		AND scope = $3
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
	deleteUsage = `DELETE FROM usage WHERE day = $1 AND scope = $2`
)

// mover moves a chat to its new id, within the transaction of a Change. A group moves once in its life, so this may
// take several round trips.
type mover struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	conn  *pgxpool.Conn
	watch func(string)
	chat  *bot.Move
	now   time.Time
}

// move makes a Change with a Move. The other parts of the Change are written first.
func (t *try) move(ctx context.Context, w *write, conn *pgxpool.Conn) error {
	if err := w.statements(); err != nil {
		return err
	}
	w.batch.statements = append(w.batch.statements, w.money.statements...)
	if err := w.send(ctx, conn, t.store.told); err != nil {
		return err
	}
	m := &mover{ctx: ctx, conn: conn, watch: t.store.told, chat: t.change.Move, now: t.store.options.Now()}
	for _, part := range []func() error{m.lanes, m.sessions, m.places, m.facts, m.charges} {
		if err := part(); err != nil {
			return fmt.Errorf("move chat %s to %s: %w", m.chat.From, m.chat.To, err)
		}
	}
	if hook := t.store.options.Hooks.BeforeCommit; hook != nil {
		hook([]*bot.Change{t.original})
	}
	if err := m.exec(commitWrite); err != nil {
		return err
	}
	t.made(w)
	return nil
}

func (m *mover) exec(query string, args ...any) error {
	m.watch(query)
	_, err := m.conn.Exec(m.ctx, query, cleaned(args)...)
	return err
}

// texts reads the only column of a query.
func (m *mover) texts(query string, args ...any) ([]string, error) {
	m.watch(query)
	rows, err := m.conn.Query(m.ctx, query, cleaned(args)...)
	if err != nil {
		return nil, err
	}
	var all []string
	err = eachRow(rows, func(scan reading.Scan) error {
		value, err := text[string](scan)
		all = append(all, value)
		return err
	})
	return all, err
}

// keys lists the keys that the move renames, each with its new one. The query takes args and then the bounds of the
// keys of the channel and bot: "/" is followed by "0" in sort order.
func (m *mover) keys(prefix, query string, args ...any) (map[string]string, error) {
	low := prefix + m.chat.Channel + "/" + m.chat.Bot + "/"
	high := prefix + m.chat.Channel + "/" + m.chat.Bot + "0"
	all, err := m.texts(query, append(args, low, high)...)
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, key := range all {
		if renamed, ok := state.Rename(m.chat, strings.TrimPrefix(key, prefix)); ok {
			keys[key] = prefix + renamed
		}
	}
	return keys, nil
}

func (m *mover) lanes() error {
	keys, err := m.keys("", lanesFrom)
	if err != nil {
		return err
	}
	var sessions []string
	for from, to := range keys {
		sessions = append(sessions, from, to)
	}
	locked := map[bot.SessionKey]known{}
	rows, err := m.conn.Query(m.ctx, lockLanes, sessions)
	if err != nil {
		return err
	}
	if err := eachRow(rows, func(scan reading.Scan) error {
		k, err := scanKnown(scan)
		locked[k.lane.Session] = k
		return err
	}); err != nil {
		return err
	}
	for from, to := range keys {
		met, found := locked[bot.SessionKey(to)]
		if err := m.lane(locked[bot.SessionKey(from)].lane, met.lane, found); err != nil {
			return fmt.Errorf("session %s: %w", from, err)
		}
	}
	return nil
}

// lane moves one session with its journal, and merges it into the existing one if there is one.
func (m *mover) lane(from, to bot.Lane, met bool) error {
	merged := state.Merge(m.chat, from, to, met, m.now)
	if merged.Ended != nil {
		if err := m.end(&merged); err != nil {
			return err
		}
	}
	session := merged.Lane.Session
	if met && merged.ShiftTo > 0 {
		if err := m.shift(session, session, merged.ShiftTo); err != nil {
			return err
		}
	}
	if err := m.shift(from.Session, session, merged.ShiftFrom); err != nil {
		return err
	}
	for _, gone := range []bot.SessionKey{from.Session, session} {
		if err := m.exec(deleteLane, gone); err != nil {
			return err
		}
	}
	return m.exec(insertLane, append(reading.LaneValues(&merged.Lane), newVersion())...)
}

// end ends the turn of a lane whose session is merged into one with another turn: only one can continue.
func (m *mover) end(merged *state.Merged) error {
	body, err := reading.EncodeEntry(merged.End)
	if err != nil {
		return err
	}
	if err := m.exec(withdrawAll, reading.Nanos(m.now), merged.Ended.Session); err != nil {
		return err
	}
	if err := m.exec(endArrival, reading.Nanos(m.now), merged.Ended.Arrival); err != nil {
		return err
	}
	return m.exec(insertEntries, merged.Ended.Session, []int64{merged.End.N}, []bool{false}, [][]byte{body})
}

// shift assigns a journal to a session and increases its numbers, in two steps so that numbers never collide.
func (m *mover) shift(from, to bot.SessionKey, by int64) error {
	if from == to && by == 0 {
		return nil
	}
	if err := m.exec(liftJournal, to, by, from); err != nil {
		return err
	}
	return m.exec(landJournal, to)
}

// sessions renames the sessions of everything but lanes. Of arrivals, it renames those that are waiting or were given
// up; the session of a finished one is not used again.
func (m *mover) sessions() error {
	for _, of := range []struct{ from, move string }{
		{queuedFrom, queuedMove},
		{expressFrom, expressMove},
		{deadFrom, deadMove},
		{approvalsFrom, approvalsMove},
		{rowsFrom, rowsMove},
		{outputsFrom, moveOverflow},
		{refsFrom, moveRefs},
	} {
		keys, err := m.keys("", of.from)
		if err != nil {
			return err
		}
		for from, to := range keys {
			if err := m.exec(of.move, to, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// places updates what is shown in the chat. Message ids belong to the old chat and are removed.
func (m *mover) places() error {
	for _, query := range []string{approvalsChat, rowsChat} {
		if err := m.exec(query, m.chat.To, m.chat.Channel, m.chat.Bot, m.chat.From); err != nil {
			return err
		}
	}
	return nil
}

// facts renames keys. If the new chat has the fact already, its own is kept.
func (m *mover) facts() error {
	buckets, err := m.texts(bucketsQuery)
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		keys, err := m.keys("", factsFrom, bucket)
		if err != nil {
			return err
		}
		for from, to := range keys {
			if err := m.exec(factsMove, to, bucket, from); err != nil {
				return err
			}
			if err := m.exec(deleteFact, bucket, from); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mover) charges() error {
	err := m.scopes(daysQuery, chargesFrom, func(day, from, to string) error {
		return m.exec(chargesMove, to, day, from)
	})
	if err != nil {
		return err
	}
	return m.scopes(usedDaysQuery, usageFrom, func(day, from, to string) error {
		if err := m.exec(usageMove, to, day, from); err != nil {
			return err
		}
		return m.exec(deleteUsage, day, from)
	})
}

// scopes renames the scopes of the chat, day by day.
func (m *mover) scopes(daysOf, from string, move func(day, from, to string) error) error {
	days, err := m.texts(daysOf)
	if err != nil {
		return err
	}
	for _, day := range days {
		keys, err := m.keys("chat/", from, day)
		if err != nil {
			return err
		}
		for old, renamed := range keys {
			if err := move(day, old, renamed); err != nil {
				return err
			}
		}
	}
	return nil
}
