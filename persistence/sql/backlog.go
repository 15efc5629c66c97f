package sql

import (
	"context"
	"fmt"
	"math"

	"github.com/zephbot/zephbot/bot"
)

// backlogColumns are those of an arrival, without its content.
const backlogColumns = `seq, channel, bot, id, source, session, express, NULL AS raw, at, attempts, problem`

// backlogQuery reads each kind of waiting arrivals by its own partial index; the planner would rather walk the table by
// seq when it knows nothing of it.
const backlogQuery = `SELECT ` + arrivalColumns + ` FROM (
SELECT ` + backlogColumns +
	` FROM inbox INDEXED BY inbox_lane WHERE state = 'waiting' AND express = 0 AND session <> '' AND ` +
	ofBot + ` AND +seq > ?
UNION ALL
SELECT ` + backlogColumns +
	` FROM inbox WHERE state = 'waiting' AND (express = 1 OR session = '') AND ` + ofBot + ` AND +seq > ?
) ORDER BY seq LIMIT CAST(? AS INTEGER)`

// Backlog implements bot.Inspector.
func (r *reader) Backlog(ctx context.Context, channel, botID string, after int64, limit int) ([]bot.Arrival, error) {
	arrivals, err := listRows(
		ctx, r.q, scanArrival, backlogQuery, channel, botID, after, channel, botID, after, atMost(limit),
	)
	return arrivals, r.wrapProblem("list waiting arrivals", err)
}

const (
	openRowsQuery = `SELECT id, ` + rowColumns + ` FROM outbox
WHERE (state = 'pending' OR state = 'sending' OR state = 'unknown') AND channel = ? AND bot = ? AND state = ? AND id < ?
ORDER BY id DESC LIMIT CAST(? AS INTEGER)`
	failedRowsQuery = `SELECT id, ` + rowColumns + ` FROM outbox
WHERE state = 'dead' AND problem <> '' AND purpose IN ('final', 'reply', 'question') AND channel = ? AND bot = ? AND id < ?
ORDER BY id DESC LIMIT CAST(? AS INTEGER)`
)

// RowsIn implements bot.Inspector.
func (r *reader) RowsIn(
	ctx context.Context, channel, botID string, state bot.RowState, before int64, limit int,
) ([]bot.Row, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	query, args := openRowsQuery, []any{channel, botID, string(state), before, atMost(limit)}
	switch state {
	case bot.Pending, bot.Sending, bot.Unknown:
	case bot.Dead:
		query, args = failedRowsQuery, []any{channel, botID, before, atMost(limit)}
	default:
		return nil, fmt.Errorf("%w: rows in state %q are not listed", bot.ErrInvalid, state)
	}
	rows, err := listRows(ctx, r.q, scanRow, query, args...)
	return rows, r.wrapProblem("list rows by state", err)
}

const chargeSums = `SELECT '', scope, unit, day, SUM(n) FROM charge WHERE day >= ? GROUP BY day, scope, unit`

// Sums implements bot.Inspector.
func (r *reader) Sums(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	recent, err := listRows(ctx, r.q, scanCharge, chargeSums, sinceDay)
	if err != nil {
		return nil, r.wrapProblem("add charges up", err)
	}
	older, err := listRows(ctx, r.q, scanCharge, usageQuery, sinceDay)
	return bot.SumCharges(append(recent, older...)), r.wrapProblem("add charges up", err)
}
