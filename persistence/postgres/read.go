package postgres

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

const laneQuery = `SELECT ` + reading.LaneColumns + `, version FROM lane WHERE session = $1`

// Lane implements bot.Reader.
func (r *reader) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	k := known{lane: state.Idle(session)}
	if err := r.clock.renew(ctx, r); err != nil {
		return bot.Lane{}, err
	}
	_, err := reading.One(ctx, r, func(scan reading.Scan) (err error) {
		k, err = scanKnown(scan)
		return err
	}, laneQuery, session)
	if err != nil {
		return bot.Lane{}, r.problem("read lane", err)
	}
	if r.see != nil {
		r.see(k)
	}
	return r.local(k.lane), nil
}

// local returns a lane whose lease ends by the clock of this process.
func (r *reader) local(lane bot.Lane) bot.Lane {
	lane.Until = r.clock.local(lane.Until)
	return lane
}

// readyQuery takes the channel, the bot, the current time by the clock of the database and by that of the caller, and a
// limit.
const readyQuery = `WITH queued AS (
	SELECT session, MIN(seq) AS seq FROM inbox
	WHERE state = 'waiting' AND NOT express AND session <> '' AND channel = $1 AND bot = $2 GROUP BY session
)
SELECT session FROM (
	SELECT queued.session AS session, queued.seq AS age FROM queued LEFT JOIN lane ON lane.session = queued.session
	WHERE lane.session IS NULL OR (lane.state = 'idle' AND (lane.owner = '' OR lane.until <= $3))
	UNION ALL
	SELECT lane.session AS session, CASE WHEN lane.turn <> '' THEN lane.arrival ELSE queued.seq END AS age
	FROM lane LEFT JOIN queued ON queued.session = lane.session
	WHERE lane.state <> 'idle' AND lane.channel = $1 AND lane.bot = $2
	AND (lane.owner = '' OR lane.until <= $3)
	AND (lane.turn <> '' OR queued.session IS NOT NULL)
	AND (lane.state = 'running'
		OR (lane.stop <> '' AND lane.stop = lane.turn)
		OR (lane.state = 'waiting' AND lane.not_before <= $4)
		OR (lane.state = 'parked' AND NOT EXISTS (SELECT 1 FROM approval WHERE approval.state = 'pending'
		AND approval.session = lane.session)))
) AS work ORDER BY age, session LIMIT $5`

// Ready implements bot.Reader.
func (r *reader) Ready(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.SessionKey, error) {
	if err := r.clock.renew(ctx, r); err != nil {
		return nil, err
	}
	sessions, err := reading.List(ctx, r, text[bot.SessionKey], readyQuery,
		channel, botID, reading.Nanos(r.clock.stored(now)), reading.Nanos(now), reading.AtMost(limit))
	return sessions, r.problem("list ready sessions", err)
}

// text reads a row of one text column.
func text[K ~string](scan reading.Scan) (K, error) {
	var value string
	err := scan(&value)
	return K(value), err
}

const stopsQuery = `SELECT session, turn FROM lane WHERE owner <> '' AND owner = $1 AND turn <> '' AND stop = turn ` +
	`ORDER BY session`

const nextQuery = `SELECT ` + reading.ArrivalColumns + ` FROM inbox
WHERE state = 'waiting' AND NOT express AND session <> '' AND session = $1 ORDER BY seq LIMIT $2`

const expressQuery = `SELECT ` + reading.ArrivalColumns + ` FROM inbox
WHERE state = 'waiting' AND (express OR session = '') AND channel = $1 AND bot = $2 ORDER BY seq LIMIT $3`

const queuedQuery = `SELECT seq, session, at FROM inbox
WHERE state = 'waiting' AND NOT express AND session <> '' AND session >= $1 AND session < $2 ORDER BY seq`

// Tickets implements bot.Reader.
func (r *reader) Tickets(ctx context.Context, scope string) ([]bot.Ticket, error) {
	low, high := scopeRange(scope)
	tickets, err := reading.List(ctx, r, func(scan reading.Scan) (t bot.Ticket, err error) {
		return t, scan(&t.Seq, (*string)(&t.Session), reading.Stamp{To: &t.At})
	}, queuedQuery, low, high)
	return tickets, r.problem("list waiting work", err)
}

// scopeRange returns the bounds of a scope in a form that PostgreSQL can store. U+0001 follows NUL, and no key contains
// it.
func scopeRange(scope string) (low, high string) {
	from, until := bot.ScopeRange(scope)
	return string(from), strings.ReplaceAll(string(until), "\x00", "\x01")
}

const busyQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE session >= $1 AND session < $2 AND turn <> ''
	ORDER BY session`

// Busy implements bot.Reader.
func (r *reader) Busy(ctx context.Context, chat string) ([]bot.Lane, error) {
	low, high := scopeRange(chat)
	lanes, err := reading.List(ctx, r, reading.ScanLane, busyQuery, low, high)
	for i := range lanes {
		lanes[i] = r.local(lanes[i])
	}
	return lanes, r.problem("list turns of a chat", err)
}

// pastQuery finds entries by their kind as json.Marshal writes it: inside of a text its quotation marks are escaped.
const pastQuery = `SELECT n, body FROM journal WHERE session = $1 AND n >= $2 AND n < $3
AND (reset OR position('"kind":"user"'::bytea IN body) > 0 OR position('"kind":"answer"'::bytea IN body) > 0)
	ORDER BY n DESC`

const inChatQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE session >= $1 AND session < $2
	ORDER BY session LIMIT $3`

// InChat implements bot.Reader.
func (r *reader) InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error) {
	low, high := scopeRange(chat)
	lanes, err := reading.List(ctx, r, reading.ScanLane, inChatQuery, low, high, reading.AtMost(limit))
	for i := range lanes {
		lanes[i] = r.local(lanes[i])
	}
	return lanes, r.problem("list the conversations of a chat", err)
}

const journalQuery = `SELECT n, body FROM journal WHERE session = $1 AND n > $2
AND n >= (SELECT COALESCE(MAX(n), 0) FROM journal WHERE session = $1 AND reset) ORDER BY n`

// The size of one read from the end of a journal, all of which the server sends. One is usually enough.
const (
	tailRows  = 1024
	tailExtra = 1 << 16 // bytes read beyond the requested room
)

const (
	// tailQuery takes a session, the entry before which to read, and the most rows and bytes. The row that exceeds
	// these is the last one.
	tailQuery = `SELECT n, body, bytes FROM (
	SELECT n, body, SUM(octet_length(body)) OVER (ORDER BY n DESC) AS bytes FROM journal WHERE session = $1 AND n < $2
	AND n >= (SELECT COALESCE(MAX(n), 0) FROM journal WHERE session = $1 AND reset) ORDER BY n DESC LIMIT $3
) AS page WHERE bytes - octet_length(body) <= $4 ORDER BY n DESC`
	entryQuery = `SELECT n, body FROM journal WHERE session = $1 AND n = $2`
)

// Tail implements bot.Reader.
func (r *reader) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	back := journal.Back{Room: room}
	most := int64(room) + tailExtra
	for before, more := int64(math.MaxInt64), true; more; {
		rows, bytes := 0, int64(0)
		err := r.EachRow(ctx, func(scan reading.Scan) error {
			var entry journal.Entry
			var n int64
			if err := scan(&n, reading.Document{To: &entry}, &bytes); err != nil {
				return err
			}
			entry.N = n
			rows, before = rows+1, n
			if more = back.Take(entry); !more {
				return reading.ErrStop
			}
			return nil
		}, tailQuery, session, before, int64(tailRows), most)
		if err != nil {
			return journal.Tail{}, r.problem("read the end of a journal", err)
		}
		more = more && (rows == tailRows || bytes > most) // otherwise, there is nothing before
	}
	tail := back.Tail()
	if back.Wants() == 0 {
		return tail, nil
	}
	var summary journal.Entry
	found, err := reading.One(ctx, r, func(scan reading.Scan) (err error) {
		summary, err = reading.ScanEntry(scan)
		return err
	}, entryQuery, session, back.Wants())
	if err == nil && found {
		tail = tail.With(summary)
	}
	return tail, r.problem("read the summary of a conversation", err)
}

// dueQuery lists its columns explicitly, because the row to be edited is joined. dueOwn is for one process.
const (
	dueQuery = `SELECT ` + dueRows + dueOrder
	dueOwn   = `SELECT ` + dueRows + ` AND o.owner = $5` + dueOrder
	dueRows  = `o.id, o.session, o.turn, o.channel, o.bot, o.surface, o.chat, o.thread, o.grp, o.purpose, o.content,
		o.reply_to,
CASE WHEN target.state = 'sent' THEN target.message
	ELSE o.edit END, o.edit_row, o.query, o.alert, o.key, o.state, o.message, o.attempts,
o.unconfirmed, o.resent, o.not_before, o.created, o.problem
FROM outbox AS o LEFT JOIN outbox AS target ON target.id = o.edit_row
WHERE o.channel = $1 AND o.bot = $2 AND o.state = 'pending' AND o.not_before <= $3
AND (target.id IS NULL OR (target.state <> 'pending' AND target.state <> 'sending'))`
	dueOrder = ` ORDER BY o.id LIMIT $4`
)

// Due implements bot.Reader.
func (r *reader) Due(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.Row, error) {
	query, args := dueQuery, []any{channel, botID, reading.Nanos(now), reading.AtMost(limit)}
	if r.process != "" {
		query, args = dueOwn, append(args, r.process)
	}
	rows, err := reading.List(ctx, r, reading.ScanRow, query, args...)
	return rows, r.problem("list due rows", err)
}

const rowQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE id = $1`

const rowOfQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE key = $1 AND key <> ''`

const (
	// stateQuery lists rows in one of the open states.
	stateQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox
	WHERE channel = $1 AND bot = $2 AND state = $3 AND state IN ('pending', 'sending', 'unknown') ORDER BY id`
	sendingOwn = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE channel = $1 AND bot = $2 AND owner = $3
		AND state = 'sending' ORDER BY id`
)

// Stranded implements bot.Reader.
func (r *reader) Stranded(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	query, args := stateQuery, []any{channel, botID, string(bot.Sending)}
	if r.process != "" {
		query, args = sendingOwn, []any{channel, botID, r.process}
	}
	rows, err := reading.List(ctx, r, reading.ScanRow, query, args...)
	return rows, r.problem("list stranded rows", err)
}

// Lost implements bot.Reader.
func (r *reader) Lost(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := reading.List(ctx, r, reading.ScanRow, stateQuery, channel, botID, string(bot.Unknown))
	return rows, r.problem("list lost rows", err)
}

const (
	factQuery  = `SELECT value FROM fact WHERE bucket = $1 AND key = $2 AND (expires = 0 OR expires > $3)`
	factsQuery = `SELECT bucket, key, value, expires FROM fact WHERE bucket = $1 AND key >= $2 AND (expires = 0
		OR expires > $3) ORDER BY key`
)

// scanKnown reads reading.LaneColumns and the version.
func scanKnown(scan reading.Scan) (known, error) {
	var k known
	return k, scan(append(reading.LaneDests(&k.lane), &k.version)...)
}
