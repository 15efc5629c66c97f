package sql

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	nextQuestions  = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval WHERE n > ? ORDER BY n LIMIT CAST(? AS INTEGER)`
	deleteQuestion = `DELETE FROM approval WHERE n = ?`
	resetQuery     = `SELECT value FROM fact WHERE bucket = ? AND key = ?`

	// aloneQuery finds the next conversation that consists only of its first entry.
	aloneQuery = `SELECT session, n, body FROM journal AS began WHERE reset = 1 AND (session, n) > (?, ?)
AND NOT EXISTS (SELECT 1 FROM journal WHERE session = began.session AND n <> began.n) ORDER BY session, n LIMIT 1`
	referredQuery = `SELECT 1 WHERE EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting' AND express = 0
		AND session <> '' AND session = CAST(? AS TEXT))
OR EXISTS (SELECT 1 FROM approval WHERE session = ?) OR EXISTS (SELECT 1 FROM outbox WHERE session = ?)
OR EXISTS (SELECT 1 FROM tool_overflow WHERE session = ?)`

	oldUsage     = `SELECT day, scope, unit FROM usage WHERE day < ? ORDER BY day LIMIT CAST(? AS INTEGER)`
	forgetUsage  = `DELETE FROM usage WHERE day = ? AND scope = ? AND unit = ?`
	usageColumns = 3
)

// oldQuestions iterates over the questions in the order of asking and deletes those that were decided long ago, unless
// their turn continues, or what they approved for a conversation still counts in it.
type oldQuestions struct {
	memory *memory
	until  time.Time
	n      int64 // position of the iteration: after this question
}

// sweep processes a batch; more is false at the end of the iteration.
func (p *oldQuestions) sweep(ctx context.Context, q *queries, batch int) (deleted int, more bool, err error) {
	found, err := reading.List(ctx, q, reading.ScanQuestion, nextQuestions, p.n, batch)
	if err != nil {
		return 0, false, err
	}
	for i := range found {
		a := &found[i].Approval
		if a.Created.After(p.until) {
			return deleted, false, nil // later questions were decided later
		}
		p.n = found[i].N
		needed, err := p.isNeeded(ctx, q, a)
		if err != nil {
			return deleted, false, err
		}
		if needed {
			continue
		}
		if err := q.execOne(ctx, deleteQuestion, p.n); err != nil {
			return deleted, false, err
		}
		deleted++
	}
	return deleted, len(found) == batch, nil
}

func (p *oldQuestions) isNeeded(ctx context.Context, q *queries, a *bot.Approval) (bool, error) {
	if a.State == bot.Open || a.Decided.After(p.until) {
		return true, nil
	}
	lane, _, err := p.memory.laneOf(ctx, q, a.Session)
	if err != nil || (lane.Turn != "" && lane.Turn == a.Turn) {
		return true, err
	}
	if a.State != bot.Approved || a.Scope != bot.Session {
		return false, nil
	}
	var began string
	see := func(scan reading.Scan) error { return scan(&began) }
	if _, err := q.queryOne(ctx, see, resetQuery, bot.ResetBucket, a.Session); err != nil {
		return true, err
	}
	anew, err := time.Parse(time.RFC3339Nano, began)
	return err != nil || a.Decided.After(anew), nil //nolint:nilerr // it was never cleared
}

// emptyLanes iterates over the conversations without a message since they were cleared, and deletes those cleared long
// ago, with their lanes, unless something still refers to them. A conversation that begins with a summary is not empty.
type emptyLanes struct {
	memory  *memory
	until   time.Time
	session bot.SessionKey // position of the iteration: after this reset
	n       int64
}

// sweep processes a batch; more is false at the end of the iteration.
func (p *emptyLanes) sweep(ctx context.Context, q *queries, batch int) (deleted int, more bool, err error) {
	for range batch {
		var reset journal.Entry
		var session bot.SessionKey
		see := func(scan reading.Scan) error { return scan(&session, &reset.N, reading.Document{To: &reset}) }
		found, err := q.queryOne(ctx, see, aloneQuery, p.session, p.n)
		if err != nil || !found {
			return deleted, false, err
		}
		p.session, p.n = session, reset.N
		if !reset.Anew() || reset.Text != "" || reset.At.IsZero() || reset.At.After(p.until) {
			continue
		}
		needed, err := p.isNeeded(ctx, q)
		if err != nil {
			return deleted, false, err
		}
		if needed {
			continue
		}
		if err := p.removeLane(ctx, q); err != nil {
			return deleted, false, err
		}
		deleted++
	}
	return deleted, true, nil
}

// isNeeded reports whether a process works on the session, or something refers to it.
func (p *emptyLanes) isNeeded(ctx context.Context, q *queries) (bool, error) {
	lane, _, err := p.memory.laneOf(ctx, q, p.session)
	if err != nil || lane.Owner != "" || lane.Turn != "" || lane.State != bot.Idle {
		return true, err
	}
	see := func(scan reading.Scan) error { return scan(new(int64)) }
	return q.queryOne(ctx, see, referredQuery, p.session, p.session, p.session, p.session)
}

func (p *emptyLanes) removeLane(ctx context.Context, q *queries) error {
	if err := p.memory.flushLanes(ctx, q); err != nil {
		return err
	}
	delete(p.memory.lanes, p.session)
	if err := q.execOne(ctx, deleteEntry, p.session, p.n); err != nil {
		return err
	}
	return q.execOne(ctx, deleteLane, p.session)
}
