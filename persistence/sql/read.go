package sql

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

// reader reads through its own connections. Each query sees everything that was committed before it began (WAL
// snapshot).
type reader struct {
	reading.Reader
	q       *queries
	dialect dialect
}

func newReader(q *queries, d dialect) reader {
	r := reader{q: q, dialect: d}
	r.Reader = reading.Reader{Run: q, Queries: inspecting, Wrap: d.wrapRead}
	return r
}

// wrapRead wraps the error of a read.
func (d *dialect) wrapRead(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, d.wrapError("read", err))
}

func (r *reader) wrapProblem(what string, err error) error { return r.dialect.wrapRead(what, err) }

// ofBot restricts a query to a bot. It is written so that no index can serve it. Otherwise the planner would use one
// that begins with channel and bot, like the unique key of the arrivals, and walk over every row ever stored, while the
// partial index contains the few that are open. ofFirst is the same for the first two parameters of a query.
const (
	ofBot   = `COALESCE(channel, '') = ? AND COALESCE(bot, '') = ?`
	ofFirst = `COALESCE(channel, '') = ?1 AND COALESCE(bot, '') = ?2`
)

const laneQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE session = ?`

// findLane reads a lane. One that has never been seen is idle.
func findLane(ctx context.Context, q *queries, session bot.SessionKey) (lane bot.Lane, found bool, err error) {
	found, err = q.queryOne(ctx, func(scan reading.Scan) (err error) {
		lane, err = reading.ScanLane(scan)
		return err
	}, laneQuery, string(session))
	if !found {
		lane = bot.Lane{Session: session, State: bot.Idle}
	}
	return lane, found, err
}

// Lane implements bot.Reader.
func (r *reader) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	lane, _, err := findLane(ctx, r.q, session)
	return lane, r.wrapProblem("read lane", err)
}

const readyQuery = `WITH queued AS (
	SELECT session, MIN(seq) AS seq FROM inbox
	WHERE state = 'waiting' AND express = 0 AND session <> '' AND ` + ofBot + ` GROUP BY session
)
SELECT session FROM (
	SELECT queued.session AS session, queued.seq AS age FROM queued LEFT JOIN lane ON lane.session = queued.session
	WHERE lane.session IS NULL OR (lane.state = 'idle' AND (lane.owner = '' OR lane.until <= ?))
	UNION ALL
	SELECT lane.session AS session, CASE WHEN lane.turn <> '' THEN lane.arrival ELSE queued.seq END AS age
	FROM lane LEFT JOIN queued ON queued.session = lane.session
	WHERE lane.state <> 'idle' AND COALESCE(lane.channel, '') = ? AND COALESCE(lane.bot, '') = ?
	AND (lane.owner = '' OR lane.until <= ?)
	AND (lane.turn <> '' OR queued.session IS NOT NULL)
	AND (lane.state = 'running'
		OR (lane.stop <> '' AND lane.stop = lane.turn)
		OR (lane.state = 'waiting' AND lane.not_before <= ?)
		OR (lane.state = 'parked' AND NOT EXISTS (SELECT 1 FROM approval WHERE approval.state = 'pending'
		AND approval.session = lane.session)))
) AS work ORDER BY age, session LIMIT CAST(? AS INTEGER)`

// Ready implements bot.Reader.
func (r *reader) Ready(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.SessionKey, error) {
	at := reading.Nanos(now)
	see := func(scan reading.Scan) (session bot.SessionKey, err error) { return session, scan(&session) }
	sessions, err := reading.List(ctx, r.q, see,
		readyQuery, channel, botID, at, channel, botID, at, at, reading.AtMost(limit))
	return sessions, r.wrapProblem("list ready sessions", err)
}

const stopsQuery = `SELECT session, turn FROM lane
WHERE owner <> '' AND owner = CAST(? AS TEXT) AND turn <> '' AND stop = turn ORDER BY session`

// nextQuery casts its parameters: where SQLite can use a partial index or a LIMIT's value, it recompiles a statement
// each time a parameter is bound.
const nextQuery = `SELECT ` + reading.ArrivalColumns + ` FROM inbox
WHERE state = 'waiting' AND express = 0 AND session <> '' AND session = CAST(? AS TEXT) ORDER BY seq
	LIMIT CAST(? AS INTEGER)`

const expressQuery = `SELECT ` + reading.ArrivalColumns + ` FROM inbox
WHERE state = 'waiting' AND (express = 1 OR session = '') AND ` + ofBot + ` ORDER BY seq LIMIT CAST(? AS INTEGER)`

const journalQuery = `SELECT n, body FROM journal WHERE session = ?1 AND n > ?2
AND n >= (SELECT COALESCE(MAX(n), 0) FROM journal WHERE session = ?1 AND reset = 1) ORDER BY n`

// pastQuery finds entries by their kind as json.Marshal writes it: inside of a text its quotation marks are escaped.
const pastQuery = `SELECT n, body FROM journal WHERE session = ? AND n >= ? AND n < ?
AND (reset = 1 OR instr(body, '"kind":"user"') > 0 OR instr(body, '"kind":"answer"') > 0) ORDER BY n DESC`

const inChatQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE session >= ? AND session < ?
	ORDER BY session LIMIT CAST(? AS INTEGER)`

// InChat implements bot.Reader.
func (r *reader) InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error) {
	low, high := bot.ScopeRange(chat)
	lanes, err := reading.List(ctx, r.q, reading.ScanLane, inChatQuery, low, high, reading.AtMost(limit))
	return lanes, r.wrapProblem("list the conversations of a chat", err)
}

// tailPage bounds the rows of one query of a tail, for engines that send all of them. It is more than the entries that
// fit into a window of 128 000 tokens.
const tailPage = 1024

const (
	tailQuery = `SELECT n, body FROM journal WHERE session = ? AND n < ?
AND n >= (SELECT COALESCE(MAX(n), 0) FROM journal WHERE session = ? AND reset = 1) ORDER BY n DESC
	LIMIT CAST(? AS INTEGER)`
	entryQuery = `SELECT n, body FROM journal WHERE session = ? AND n = ?`
)

// Tail implements bot.Reader.
func (r *reader) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	back := journal.Back{Room: room}
	for before, more := int64(math.MaxInt64), true; more; {
		rows := 0
		err := r.q.EachRow(ctx, func(scan reading.Scan) error {
			entry, err := reading.ScanEntry(scan)
			if err != nil {
				return err
			}
			rows, before = rows+1, entry.N
			if more = back.Take(entry); !more {
				return reading.ErrStop
			}
			return nil
		}, tailQuery, string(session), before, string(session), tailPage)
		if err != nil {
			return journal.Tail{}, r.wrapProblem("read the end of a journal", err)
		}
		more = more && rows == tailPage
	}
	tail := back.Tail()
	if back.Wants() == 0 {
		return tail, nil
	}
	var summary journal.Entry
	found, err := r.q.queryOne(ctx, func(scan reading.Scan) (err error) {
		summary, err = reading.ScanEntry(scan)
		return err
	}, entryQuery, session, back.Wants())
	if err == nil && found {
		tail = tail.With(summary)
	}
	return tail, r.wrapProblem("read the summary of a conversation", err)
}

// dueQuery lists its columns explicitly, because the row to be edited is joined.
const dueQuery = `SELECT o.id, o.session, o.turn, o.channel, o.bot, o.surface, o.chat, o.thread, o.grp, o.purpose,
	o.content, o.reply_to,
CASE WHEN target.state = 'sent' THEN target.message
	ELSE o.edit END, o.edit_row, o.query, o.alert, o.key, o.state, o.message, o.attempts,
o.unconfirmed, o.resent, o.not_before, o.created, o.problem
FROM outbox AS o LEFT JOIN outbox AS target ON target.id = o.edit_row
WHERE o.channel = ? AND o.bot = ? AND o.state = 'pending' AND o.not_before <= ?
AND (target.id IS NULL OR (target.state <> 'pending' AND target.state <> 'sending')) ORDER BY o.id
	LIMIT CAST(? AS INTEGER)`

// Due implements bot.Reader.
func (r *reader) Due(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.Row, error) {
	rows, err := reading.List(ctx, r.q, reading.ScanRow, dueQuery, channel, botID, reading.Nanos(now), reading.AtMost(limit))
	return rows, r.wrapProblem("list due rows", err)
}

const rowQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE id = ?`

const rowOfQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE key = ? AND key <> ''`

const strandedQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE channel = ? AND bot = ? AND state = 'sending'
	ORDER BY id`

// Stranded implements bot.Reader.
func (r *reader) Stranded(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := reading.List(ctx, r.q, reading.ScanRow, strandedQuery, channel, botID)
	return rows, r.wrapProblem("list stranded rows", err)
}

const lostQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE channel = ? AND bot = ? AND state = 'unknown'
	ORDER BY id`

// Lost implements bot.Reader.
func (r *reader) Lost(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := reading.List(ctx, r.q, reading.ScanRow, lostQuery, channel, botID)
	return rows, r.wrapProblem("list lost rows", err)
}

const (
	factQuery  = `SELECT value FROM fact WHERE bucket = ? AND key = ? AND (expires = 0 OR expires > ?)`
	factsQuery = `SELECT bucket, key, value, expires FROM fact WHERE bucket = ? AND key >= ? AND (expires = 0
		OR expires > ?) ORDER BY key`
)

const queuedQuery = `SELECT seq, session, at FROM inbox
WHERE state = 'waiting' AND express = 0 AND session <> '' AND session >= ? AND session < ? ORDER BY seq`

// Tickets implements bot.Reader.
func (r *reader) Tickets(ctx context.Context, scope string) ([]bot.Ticket, error) {
	low, high := bot.ScopeRange(scope)
	tickets, err := reading.List(ctx, r.q, func(scan reading.Scan) (t bot.Ticket, err error) {
		return t, scan(&t.Seq, (*string)(&t.Session), reading.Stamp{To: &t.At})
	}, queuedQuery, low, high)
	return tickets, r.wrapProblem("list waiting work", err)
}

const busyQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE session >= ? AND session < ? AND turn <> ''
	ORDER BY session`

// Busy implements bot.Reader.
func (r *reader) Busy(ctx context.Context, chat string) ([]bot.Lane, error) {
	low, high := bot.ScopeRange(chat)
	lanes, err := reading.List(ctx, r.q, reading.ScanLane, busyQuery, low, high)
	return lanes, r.wrapProblem("list turns of a chat", err)
}
