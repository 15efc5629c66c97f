package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

const (
	approvalQuery   = `SELECT ` + approvalColumns + ` FROM approval WHERE id = $1`
	approvalOfQuery = `SELECT ` + approvalColumns + ` FROM approval WHERE session = $1 AND call = $2 ORDER BY n DESC
		LIMIT 1`
	openQuery    = `SELECT ` + approvalColumns + ` FROM approval WHERE state = 'pending' AND session = $1 ORDER BY n`
	openAllQuery = `SELECT ` + approvalColumns + ` FROM approval WHERE state = 'pending' ORDER BY n`
	grantedQuery = `SELECT ` + approvalColumns + ` FROM approval
WHERE state = 'approved' AND scope = 'session' AND session = $1 AND hash = $2 ORDER BY n DESC LIMIT 1`
	askedQuery = `SELECT ` + approvalColumns + ` FROM approval
WHERE channel = $1 AND bot = $2 AND tool = $3 AND created > $4 ORDER BY created DESC, n DESC LIMIT $5`
)

// Approval implements bot.Approvals.
func (r *reader) Approval(ctx context.Context, id string) (bot.Approval, error) {
	return r.onlyApproval(ctx, "read question", "question "+id, approvalQuery, id)
}

// ApprovalOf implements bot.Approvals.
func (r *reader) ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error) {
	return r.onlyApproval(ctx, "read question of call", "question of call "+call, approvalOfQuery, session, call)
}

// onlyApproval reads the question that a query finds; bot.ErrNotFound if there is none.
func (r *reader) onlyApproval(ctx context.Context, doing, what, query string, args ...any) (bot.Approval, error) {
	found, err := list(ctx, r, scanApproval, query, args...)
	if err != nil {
		return bot.Approval{}, r.problem(doing, err)
	}
	if len(found) == 0 {
		return bot.Approval{}, fmt.Errorf("%s: %w", what, bot.ErrNotFound)
	}
	return found[0], nil
}

// OpenApprovals implements bot.Approvals.
func (r *reader) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	query, args := openAllQuery, []any(nil)
	if session != "" {
		query, args = openQuery, []any{session}
	}
	open, err := list(ctx, r, scanApproval, query, args...)
	return open, r.problem("list open questions", err)
}

// GrantedInSession implements bot.Approvals.
func (r *reader) GrantedInSession(
	ctx context.Context, session bot.SessionKey, hash string,
) (bot.Approval, bool, error) {
	found, err := list(ctx, r, scanApproval, grantedQuery, session, hash)
	if err != nil || len(found) == 0 {
		return bot.Approval{}, false, r.problem("read grants", err)
	}
	return found[0], true, nil
}

// AskedSince implements bot.Approvals.
func (r *reader) AskedSince(
	ctx context.Context, channel, botID, tool string, since time.Time, limit int,
) ([]bot.Approval, error) {
	found, err := list(ctx, r, scanApproval, askedQuery, channel, botID, tool, nanos(since), atMost(limit))
	return found, r.problem("list questions", err)
}

// countsQuery counts each kind of open work by the conditions of its own partial index.
const countsQuery = `SELECT
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'running' AND channel = $1 AND bot = $2),
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'parked' AND channel = $1 AND bot = $2),
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'waiting' AND channel = $1 AND bot = $2),
(SELECT COUNT(*) FROM inbox WHERE state = 'waiting' AND NOT express AND session <> '' AND channel = $1 AND bot = $2)
+ (SELECT COUNT(*) FROM inbox WHERE state = 'waiting' AND (express OR session = '') AND channel = $1 AND bot = $2),
(SELECT COUNT(*) FROM outbox WHERE state IN ('pending', 'sending', 'unknown') AND state <> 'unknown' AND channel = $1
	AND bot = $2),
(SELECT COUNT(*) FROM outbox WHERE state = 'unknown' AND channel = $1 AND bot = $2),
(SELECT COUNT(*) FROM lane WHERE channel = $1 AND bot = $2),
(SELECT COUNT(*) FROM inbox WHERE state = 'dead' AND channel = $1 AND bot = $2)`

// Counts implements bot.Inspector.
func (r *reader) Counts(ctx context.Context, channel, botID string) (bot.Counts, error) {
	var c bot.Counts
	_, err := one(ctx, r, func(row row) error {
		return row.Scan(&c.Running, &c.Parked, &c.Waiting, &c.Queued,
			&c.Undelivered, &c.Lost, &c.Sessions, &c.DeadLetters)
	}, countsQuery, channel, botID)
	return c, r.problem("count", err)
}

const (
	chargesQuery = `SELECT key, scope, unit, day, n FROM charge WHERE day >= $1 ORDER BY day`
	usageQuery   = `SELECT '', scope, unit, day, n FROM usage WHERE day >= $1 ORDER BY day`
	usedQuery    = `SELECT ((SELECT COALESCE(SUM(n), 0) FROM charge WHERE day = ANY($1::text[]) AND scope = $2 AND unit = $3)
+ (SELECT COALESCE(SUM(n), 0) FROM usage WHERE day = ANY($1::text[]) AND scope = $2 AND unit = $3))::bigint`
)

// Charges implements bot.Inspector.
func (r *reader) Charges(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	var charges []bot.Charge
	for _, query := range []string{usageQuery, chargesQuery} {
		some, err := list(ctx, r, scanCharge, query, sinceDay)
		if err != nil {
			return nil, r.problem("list charges", err)
		}
		charges = append(charges, some...)
	}
	slices.SortFunc(charges, func(a, b bot.Charge) int {
		return cmp.Or(
			cmp.Compare(a.Day, b.Day), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit),
		)
	})
	return charges, nil
}

// Used implements bot.Inspector.
func (r *reader) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	var sum int64
	_, err := one(ctx, r, func(row row) error { return row.Scan(&sum) }, usedQuery, days, scope, unit)
	return sum, r.problem("add charges up", err)
}

const (
	rowsQuery  = `SELECT ` + rowColumns + ` FROM outbox WHERE session = $1 ORDER BY id DESC LIMIT $2`
	lanesQuery = `SELECT ` + laneColumns + ` FROM lane WHERE channel = $1 AND bot = $2 ORDER BY session LIMIT $3`
	deadQuery  = `SELECT ` + arrivalColumns + ` FROM inbox WHERE state = 'dead' ORDER BY seq DESC LIMIT $1`
)

// Rows implements bot.Inspector.
func (r *reader) Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error) {
	rows, err := list(ctx, r, scanRow, rowsQuery, session, atMost(limit))
	slices.Reverse(rows)
	return rows, r.problem("list rows", err)
}

// Lanes implements bot.Inspector.
func (r *reader) Lanes(ctx context.Context, channel, botID string, limit int) ([]bot.Lane, error) {
	lanes, err := list(ctx, r, r.scanLane, lanesQuery, channel, botID, atMost(limit))
	return lanes, r.problem("list lanes", err)
}

const arrivalOfQuery = `SELECT ` + arrivalColumns + ` FROM inbox WHERE channel = $1 AND bot = $2 AND id = $3`

// ArrivalOf implements bot.Inspector.
func (r *reader) ArrivalOf(ctx context.Context, channel, botID, id string) (bot.Arrival, error) {
	found, err := list(ctx, r, scanArrival, arrivalOfQuery, channel, botID, id)
	if err == nil && len(found) == 0 {
		return bot.Arrival{}, fmt.Errorf("arrival %s: %w", id, bot.ErrNotFound)
	}
	if err != nil {
		return bot.Arrival{}, r.problem("read arrival", err)
	}
	return found[0], nil
}

// DeadLetters implements bot.Inspector.
func (r *reader) DeadLetters(ctx context.Context, limit int) ([]bot.Arrival, error) {
	arrivals, err := list(ctx, r, scanArrival, deadQuery, atMost(limit))
	return arrivals, r.problem("list dead letters", err)
}
