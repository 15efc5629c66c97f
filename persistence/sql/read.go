package sql

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// reader reads through its own connections. Each query sees everything that was committed before it began (WAL
// snapshot).
type reader struct {
	q       *queries
	dialect dialect
}

// atMost is the value for LIMIT: no limit for 0 or less.
func atMost(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

// listRows reads all rows of a query.
func listRows[T any](
	ctx context.Context, q *queries, read func(scanner) (T, error), query string, args ...any,
) ([]T, error) {
	var all []T
	err := q.queryEach(ctx, func(scan scanner) error {
		value, err := read(scan)
		all = append(all, value)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// wrapProblem wraps the error of a read.
func (r *reader) wrapProblem(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, r.dialect.wrapError("read", err))
}

// ofBot restricts a query to a bot. It is written so that no index can serve it. Otherwise the planner would use one
// that begins with channel and bot, like the unique key of the arrivals, and walk over every row ever stored, while the
// partial index contains the few that are open.
const ofBot = `COALESCE(channel, '') = ? AND COALESCE(bot, '') = ?`

const laneQuery = `SELECT ` + laneColumns + ` FROM lane WHERE session = ?`

// findLane reads a lane. One that has never been seen is idle.
func findLane(ctx context.Context, q *queries, session bot.SessionKey) (lane bot.Lane, found bool, err error) {
	found, err = q.queryOne(ctx, func(scan scanner) (err error) {
		lane, err = scanLane(scan)
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
	at := toNanos(now)
	see := func(scan scanner) (session bot.SessionKey, err error) { return session, scan(&session) }
	sessions, err := listRows(ctx, r.q, see,
		readyQuery, channel, botID, at, channel, botID, at, at, atMost(limit))
	return sessions, r.wrapProblem("list ready sessions", err)
}

const stopsQuery = `SELECT session, turn FROM lane
WHERE owner <> '' AND owner = CAST(? AS TEXT) AND turn <> '' AND stop = turn ORDER BY session`

// Stops implements bot.Reader.
func (r *reader) Stops(ctx context.Context, owner string) ([]bot.Stop, error) {
	stops, err := listRows(
		ctx, r.q, func(scan scanner) (s bot.Stop, err error) { return s, scan(&s.Session, &s.Turn) }, stopsQuery, owner,
	)
	return stops, r.wrapProblem("list turns to stop", err)
}

// nextQuery casts its parameters: where SQLite can use a partial index or a LIMIT's value, it recompiles a statement
// each time a parameter is bound.
const nextQuery = `SELECT ` + arrivalColumns + ` FROM inbox
WHERE state = 'waiting' AND express = 0 AND session <> '' AND session = CAST(? AS TEXT) ORDER BY seq
	LIMIT CAST(? AS INTEGER)`

// Next implements bot.Reader.
func (r *reader) Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error) {
	arrivals, err := listRows(ctx, r.q, scanArrival, nextQuery, string(session), atMost(limit))
	return arrivals, r.wrapProblem("list waiting arrivals", err)
}

const expressQuery = `SELECT ` + arrivalColumns + ` FROM inbox
WHERE state = 'waiting' AND (express = 1 OR session = '') AND ` + ofBot + ` ORDER BY seq LIMIT CAST(? AS INTEGER)`

// Express implements bot.Reader.
func (r *reader) Express(ctx context.Context, channel, botID string, limit int) ([]bot.Arrival, error) {
	arrivals, err := listRows(ctx, r.q, scanArrival, expressQuery, channel, botID, atMost(limit))
	return arrivals, r.wrapProblem("list express arrivals", err)
}

const journalQuery = `SELECT n, body FROM journal WHERE session = ? AND n > ?
AND n >= (SELECT COALESCE(MAX(n), 0) FROM journal WHERE session = ? AND reset = 1) ORDER BY n`

// Journal implements bot.Reader.
func (r *reader) Journal(ctx context.Context, session bot.SessionKey, after int64) ([]journal.Entry, error) {
	entries, err := listRows(ctx, r.q, scanEntry, journalQuery, session, after, session)
	return entries, r.wrapProblem("read journal", err)
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
		err := r.q.queryEach(ctx, func(scan scanner) error {
			entry, err := scanEntry(scan)
			if err != nil {
				return err
			}
			rows, before = rows+1, entry.N
			if more = back.Take(entry); !more {
				return errStop
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
	found, err := r.q.queryOne(ctx, func(scan scanner) (err error) {
		summary, err = scanEntry(scan)
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
	rows, err := listRows(ctx, r.q, scanRow, dueQuery, channel, botID, toNanos(now), atMost(limit))
	return rows, r.wrapProblem("list due rows", err)
}

const rowQuery = `SELECT id, ` + rowColumns + ` FROM outbox WHERE id = ?`

// Row implements bot.Reader.
func (r *reader) Row(ctx context.Context, id int64) (bot.Row, error) {
	rows, err := listRows(ctx, r.q, scanRow, rowQuery, id)
	if err != nil {
		return bot.Row{}, r.wrapProblem("read row", err)
	}
	if len(rows) == 0 {
		return bot.Row{}, fmt.Errorf("row %d: %w", id, bot.ErrNotFound)
	}
	return rows[0], nil
}

const strandedQuery = `SELECT id, ` + rowColumns + ` FROM outbox WHERE channel = ? AND bot = ? AND state = 'sending'
	ORDER BY id`

// Stranded implements bot.Reader.
func (r *reader) Stranded(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := listRows(ctx, r.q, scanRow, strandedQuery, channel, botID)
	return rows, r.wrapProblem("list stranded rows", err)
}

const lostQuery = `SELECT id, ` + rowColumns + ` FROM outbox WHERE channel = ? AND bot = ? AND state = 'unknown'
	ORDER BY id`

// Lost implements bot.Reader.
func (r *reader) Lost(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := listRows(ctx, r.q, scanRow, lostQuery, channel, botID)
	return rows, r.wrapProblem("list lost rows", err)
}

const (
	factQuery  = `SELECT value FROM fact WHERE bucket = ? AND key = ? AND (expires = 0 OR expires > ?)`
	factsQuery = `SELECT bucket, key, value, expires FROM fact WHERE bucket = ? AND key >= ? AND (expires = 0
		OR expires > ?) ORDER BY key`
)

// Fact implements bot.Facts.
func (r *reader) Fact(ctx context.Context, bucket, key string, now time.Time) (string, error) {
	var value string
	_, err := r.q.queryOne(ctx, func(scan scanner) error { return scan(&value) }, factQuery, bucket, key, toNanos(now))
	return value, r.wrapProblem("read fact", err)
}

// FactsOf implements bot.Facts.
func (r *reader) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	var facts []bot.Fact
	err := r.q.queryEach(ctx, func(scan scanner) error {
		var f bot.Fact
		if err := scan(&f.Bucket, &f.Key, &f.Value, stamp{&f.Expires}); err != nil {
			return err
		}
		if !strings.HasPrefix(f.Key, prefix) {
			return errStop // the keys with the prefix are adjacent
		}
		facts = append(facts, f)
		return nil
	}, factsQuery, bucket, prefix, toNanos(now))
	return facts, r.wrapProblem("list facts", err)
}
