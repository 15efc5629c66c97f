package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/zephbot/zephbot/bot"
)

// backlogQuery reads each kind of waiting arrivals by its own partial index, without the content.
const (
	backlogColumns = `seq, channel, bot, id, source, session, express, NULL::bytea AS raw, at, attempts, problem`
	backlogQuery   = `SELECT ` + arrivalColumns + ` FROM (
SELECT ` + backlogColumns +
		` FROM inbox WHERE state = 'waiting' AND NOT express AND session <> '' AND channel = $1 AND bot = $2
	AND seq > $3
UNION ALL
SELECT ` + backlogColumns +
		` FROM inbox WHERE state = 'waiting' AND (express OR session = '') AND channel = $1 AND bot = $2
	AND seq > $3
) AS waiting ORDER BY seq LIMIT $4`
)

// Backlog implements bot.Inspector.
func (r *reader) Backlog(ctx context.Context, channel, botID string, after int64, limit int) ([]bot.Arrival, error) {
	arrivals, err := list(ctx, r, scanArrival, backlogQuery, channel, botID, after, atMost(limit))
	return arrivals, r.problem("list waiting arrivals", err)
}

const (
	openRowsQuery = `SELECT ` + rowColumns + ` FROM outbox WHERE state IN ('pending', 'sending', 'unknown')
	AND channel = $1 AND bot = $2 AND state = $3 AND id < $4 ORDER BY id DESC LIMIT $5`
	failedRowsQuery = `SELECT ` + rowColumns + ` FROM outbox WHERE state = 'dead' AND problem <> ''
	AND purpose IN ('final', 'reply', 'question') AND channel = $1 AND bot = $2 AND id < $3 ORDER BY id DESC LIMIT $4`
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
	rows, err := list(ctx, r, scanRow, query, args...)
	return rows, r.problem("list rows by state", err)
}

const chargeSums = `SELECT '', scope, unit, day, SUM(n)::bigint FROM charge WHERE day >= $1 GROUP BY day, scope, unit`

// Sums implements bot.Inspector.
func (r *reader) Sums(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	recent, err := list(ctx, r, scanCharge, chargeSums, sinceDay)
	if err != nil {
		return nil, r.problem("add charges up", err)
	}
	older, err := list(ctx, r, scanCharge, usageQuery, sinceDay)
	return bot.SumCharges(append(recent, older...)), r.problem("add charges up", err)
}
