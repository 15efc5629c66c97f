package sql

import (
	"context"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The queries of a move. Those that list keys take the bounds of the keys of the channel and bot. If the key is not the
// first column of an index, the columns before it have few values, which are walked one by one.
const (
	lanesFrom   = `SELECT session FROM lane WHERE session >= ? AND session < ? ORDER BY session`
	deleteLane  = `DELETE FROM lane WHERE session = ?`
	liftJournal = `UPDATE journal SET session = ?, n = -(n + ?) WHERE session = ?`
	landJournal = `UPDATE journal SET n = -n WHERE session = ? AND n < 0`

	queuedFrom = `SELECT DISTINCT session FROM inbox WHERE state = 'waiting' AND express = 0 AND session <> ''
		AND session >= ? AND session < ?`
	queuedMove = `UPDATE inbox SET session = ? WHERE state = 'waiting' AND express = 0 AND session <> ''
		AND session = ?`
	expressFrom = `SELECT DISTINCT session FROM inbox WHERE state = 'waiting' AND (express = 1 OR session = '')
		AND session >= ? AND session < ?`
	expressMove = `UPDATE inbox SET session = ? WHERE state = 'waiting' AND (express = 1 OR session = '')
		AND session = ?`
	deadFrom = `SELECT DISTINCT session FROM inbox WHERE state = 'dead' AND session >= ? AND session < ?`
	deadMove = `UPDATE inbox SET session = ? WHERE state = 'dead' AND session = ?`

	approvalsFrom = `SELECT DISTINCT session FROM approval WHERE session >= ? AND session < ?`
	approvalsMove = `UPDATE approval SET session = ? WHERE session = ?`
	approvalsChat = `UPDATE approval SET chat = ? WHERE channel = ? AND bot = ? AND chat = ?`

	rowsFrom = `SELECT DISTINCT session FROM outbox WHERE session >= ? AND session < ?`
	rowsMove = `UPDATE outbox SET session = ? WHERE session = ?`
	rowsChat = `UPDATE outbox SET chat = ?, message = '', edit = '', reply_to = '' WHERE channel = ? AND bot = ?
		AND chat = ?`

	bucketsQuery = `WITH RECURSIVE buckets (bucket) AS (
	SELECT MIN(bucket) FROM fact UNION ALL SELECT (SELECT MIN(fact.bucket) FROM fact
	WHERE fact.bucket > buckets.bucket) FROM buckets WHERE bucket IS NOT NULL
) SELECT bucket FROM buckets WHERE bucket IS NOT NULL`
	factsFrom = `SELECT key FROM fact WHERE bucket = ? AND key >= ? AND key < ?`
	factsMove = `INSERT INTO fact (bucket, key, value, expires) SELECT bucket, ?, value, expires FROM fact
		WHERE bucket = ? AND key = ?
ON CONFLICT (bucket, key) DO NOTHING`

	daysQuery = `WITH RECURSIVE days (day) AS (
	SELECT MIN(day) FROM charge UNION ALL SELECT (SELECT MIN(charge.day) FROM charge WHERE charge.day > days.day)
	FROM days WHERE day IS NOT NULL
) SELECT day FROM days WHERE day IS NOT NULL`
	chargesFrom   = `SELECT DISTINCT scope FROM charge WHERE day = ? AND scope >= ? AND scope < ?`
	chargesMove   = `UPDATE charge SET scope = ? WHERE day = ? AND scope = ?`
	usedDaysQuery = `WITH RECURSIVE days (day) AS (
	SELECT MIN(day) FROM usage UNION ALL SELECT (SELECT MIN(usage.day) FROM usage WHERE usage.day > days.day)
	FROM days WHERE day IS NOT NULL
) SELECT day FROM days WHERE day IS NOT NULL`
	usageFrom = `SELECT DISTINCT scope FROM usage WHERE day = ? AND scope >= ? AND scope < ?`
	usageMove = `INSERT INTO usage (day, scope, unit, n) SELECT day, ?, unit, n FROM usage WHERE day = ? AND scope = ?
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
	deleteUsage = `DELETE FROM usage WHERE day = ? AND scope = ?`
)

// moveChat moves a chat to its new id as defined by state.Rename, Relocate, MoveRow and Merge, with one statement
// for all rows where there are many. It reads and writes lanes in the database, so what is remembered is written
// before and dropped afterwards.
func (t *step) moveChat(ctx context.Context, m *bot.Move) error {
	if err := t.memory.flushLanes(ctx, t.q); err != nil {
		return err
	}
	t.memory.forgetRows()
	for _, part := range []func(context.Context, *bot.Move) error{
		t.moveLanes, t.moveArrivals, t.moveApprovals, t.moveRows, t.moveFacts, t.moveCharges,
		t.moveOverflow, t.moveBlobs,
	} {
		if err := part(ctx, m); err != nil {
			return err
		}
	}
	t.memory.forgetRows()
	return nil
}

// listKeys lists the keys that the move renames. The query takes args and then the bounds of the keys of the channel
// and bot: "/" is followed by "0" in sort order.
func (t *step) listKeys(ctx context.Context, m *bot.Move, prefix, query string, args ...any) ([]string, error) {
	var keys []string
	low := prefix + m.Channel + "/" + m.Bot + "/"
	high := prefix + m.Channel + "/" + m.Bot + "0"
	err := t.q.EachRow(ctx, func(scan reading.Scan) error {
		var key string
		if err := scan(&key); err != nil {
			return err
		}
		if _, ok := state.Rename(m, strings.TrimPrefix(key, prefix)); ok {
			keys = append(keys, key)
		}
		return nil
	}, query, append(args, low, high)...)
	return keys, err
}

func (t *step) moveLanes(ctx context.Context, m *bot.Move) error {
	sessions, err := t.listKeys(ctx, m, "", lanesFrom)
	if err != nil {
		return err
	}
	for _, old := range sessions {
		from, _, err := findLane(ctx, t.q, bot.SessionKey(old))
		if err != nil {
			return err
		}
		if err := t.moveLane(ctx, m, from); err != nil {
			return fmt.Errorf("session %s: %w", old, err)
		}
	}
	return nil
}

// moveLane moves one session with its journal, and merges it into the existing one if there is one.
func (t *step) moveLane(ctx context.Context, m *bot.Move, from bot.Lane) error {
	session, _ := state.Rename(m, from.Session)
	to, met, err := findLane(ctx, t.q, session)
	if err != nil {
		return err
	}
	merged := state.Merge(m, from, to, met, t.now)
	if merged.Ended != nil {
		if err := t.endTurn(ctx, merged.Ended, merged.End); err != nil {
			return err
		}
	}
	if err := t.shiftJournal(ctx, session, session, merged.ShiftTo); err != nil {
		return err
	}
	if err := t.shiftJournal(ctx, from.Session, session, merged.ShiftFrom); err != nil {
		return err
	}
	if err := t.q.execOne(ctx, deleteLane, from.Session); err != nil {
		return err
	}
	if err := t.q.execOne(ctx, deleteLane, session); err != nil {
		return err
	}
	return t.q.execOne(ctx, insertLane, reading.LaneValues(&merged.Lane)...)
}

// shiftJournal assigns a journal to a session and increases its numbers, in two steps so that numbers never collide.
func (t *step) shiftJournal(ctx context.Context, from, to bot.SessionKey, by int64) error {
	if from == to && by == 0 {
		return nil
	}
	err := t.q.execOne(ctx, liftJournal, to, by, from)
	if err != nil {
		return err
	}
	return t.q.execOne(ctx, landJournal, to)
}

// endTurn ends the turn of a lane whose session is merged into one with another turn: only one can continue.
func (t *step) endTurn(ctx context.Context, lane *bot.Lane, end journal.Entry) error {
	open, err := reading.List(ctx, t.q, reading.ScanApproval, openQuery, lane.Session)
	if err != nil {
		return err
	}
	for i := range open {
		withdrawn := state.Withdraw(open[i], "", t.now)
		if err := t.saveQuestion(ctx, &withdrawn); err != nil {
			return err
		}
	}
	a, found, err := t.memory.arrivalOf(ctx, t.q, lane.Arrival)
	if err != nil {
		return err
	}
	if found && a.State == state.Waiting {
		if err := t.saveArrival(ctx, lane.Arrival, a.Finish(t.now)); err != nil {
			return err
		}
	}
	body, err := reading.EncodeEntry(end)
	if err != nil {
		return err
	}
	return t.q.execOne(ctx, insertEntry, lane.Session, end.N, 0, string(body))
}

// moveArrivals moves arrivals that are waiting or were given up; the session of a finished one is not used again.
func (t *step) moveArrivals(ctx context.Context, m *bot.Move) error {
	opens := []struct{ from, move string }{{queuedFrom, queuedMove}, {expressFrom, expressMove}, {deadFrom, deadMove}}
	for _, open := range opens {
		if err := t.moveSessions(ctx, m, open.from, open.move); err != nil {
			return err
		}
	}
	return nil
}

// moveSessions renames the sessions that a query lists.
func (t *step) moveSessions(ctx context.Context, m *bot.Move, from, move string) error {
	sessions, err := t.listKeys(ctx, m, "", from)
	if err != nil {
		return err
	}
	for _, old := range sessions {
		session, _ := state.Rename(m, old)
		if err := t.q.execOne(ctx, move, session, old); err != nil {
			return err
		}
	}
	return nil
}

func (t *step) moveApprovals(ctx context.Context, m *bot.Move) error {
	if err := t.moveSessions(ctx, m, approvalsFrom, approvalsMove); err != nil {
		return err
	}
	return t.q.execOne(ctx, approvalsChat, m.To, m.Channel, m.Bot, m.From)
}

// moveRows also removes the message ids, which belong to the old chat.
func (t *step) moveRows(ctx context.Context, m *bot.Move) error {
	if err := t.moveSessions(ctx, m, rowsFrom, rowsMove); err != nil {
		return err
	}
	return t.q.execOne(ctx, rowsChat, m.To, m.Channel, m.Bot, m.From)
}

// readTexts reads the only column of a query.
func (t *step) readTexts(ctx context.Context, query string) ([]string, error) {
	return reading.List(ctx, t.q, func(scan reading.Scan) (text string, err error) { return text, scan(&text) }, query)
}

// moveFacts renames keys. If the new chat has the fact already, its own is kept.
func (t *step) moveFacts(ctx context.Context, m *bot.Move) error {
	buckets, err := t.readTexts(ctx, bucketsQuery)
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		keys, err := t.listKeys(ctx, m, "", factsFrom, bucket)
		if err != nil {
			return err
		}
		for _, old := range keys {
			key, _ := state.Rename(m, old)
			if err := t.q.execOne(ctx, factsMove, key, bucket, old); err != nil {
				return err
			}
			if err := t.q.execOne(ctx, deleteFact, bucket, old); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *step) moveCharges(ctx context.Context, m *bot.Move) error {
	err := t.moveScopes(ctx, m, daysQuery, chargesFrom, func(day, from, to string) error {
		return t.q.execOne(ctx, chargesMove, to, day, from)
	})
	if err != nil {
		return err
	}
	return t.moveScopes(ctx, m, usedDaysQuery, usageFrom, func(day, from, to string) error {
		if err := t.q.execOne(ctx, usageMove, to, day, from); err != nil {
			return err
		}
		return t.q.execOne(ctx, deleteUsage, day, from)
	})
}

// moveScopes renames the scopes of a chat, day by day.
func (t *step) moveScopes(
	ctx context.Context, m *bot.Move, daysOf, from string, move func(day, from, to string) error,
) error {
	const prefix = "chat/"
	days, err := t.readTexts(ctx, daysOf)
	if err != nil {
		return err
	}
	for _, day := range days {
		scopes, err := t.listKeys(ctx, m, prefix, from, day)
		if err != nil {
			return err
		}
		for _, old := range scopes {
			scope, _ := state.Rename(m, strings.TrimPrefix(old, prefix))
			if err := move(day, old, prefix+scope); err != nil {
				return err
			}
		}
	}
	return nil
}
