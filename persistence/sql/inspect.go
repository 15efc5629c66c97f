package sql

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

func listApprovals(ctx context.Context, q *queries, query string, args ...any) ([]bot.Approval, error) {
	return listRows(ctx, q, scanApproval, query, args...)
}

const approvalQuery = `SELECT ` + approvalColumns + ` FROM approval WHERE id = ?`

// readApproval finds a question by id, or returns bot.ErrNotFound.
func readApproval(ctx context.Context, q *queries, id string) (bot.Approval, error) {
	found, err := listApprovals(ctx, q, approvalQuery, id)
	if err != nil {
		return bot.Approval{}, fmt.Errorf("read question: %w", err)
	}
	if len(found) == 0 {
		return bot.Approval{}, fmt.Errorf("question %s: %w", id, bot.ErrNotFound)
	}
	return found[0], nil
}

// Approval implements bot.Approvals.
func (r *reader) Approval(ctx context.Context, id string) (bot.Approval, error) {
	a, err := readApproval(ctx, r.q, id)
	return a, r.dialect.wrapError("read", err)
}

const approvalOfQuery = `SELECT ` + approvalColumns + ` FROM approval WHERE session = ? AND call = ? ORDER BY n DESC
	LIMIT 1`

// ApprovalOf implements bot.Approvals.
func (r *reader) ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error) {
	found, err := listApprovals(ctx, r.q, approvalOfQuery, session, call)
	if err != nil {
		return bot.Approval{}, r.wrapProblem("read question of call", err)
	}
	if len(found) == 0 {
		return bot.Approval{}, fmt.Errorf("question of call %s: %w", call, bot.ErrNotFound)
	}
	return found[0], nil
}

const (
	openQuery    = `SELECT ` + approvalColumns + ` FROM approval WHERE state = 'pending' AND session = ? ORDER BY n`
	openAllQuery = `SELECT ` + approvalColumns + ` FROM approval WHERE state = 'pending' ORDER BY n`
	grantedQuery = `SELECT ` + approvalColumns + ` FROM approval
WHERE state = 'approved' AND scope = 'session' AND session = ? AND hash = ? ORDER BY n DESC LIMIT 1`
)

// OpenApprovals implements bot.Approvals.
func (r *reader) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	query, args := openAllQuery, []any(nil)
	if session != "" {
		query, args = openQuery, []any{session}
	}
	open, err := listApprovals(ctx, r.q, query, args...)
	return open, r.wrapProblem("list open questions", err)
}

// GrantedInSession implements bot.Approvals.
func (r *reader) GrantedInSession(
	ctx context.Context, session bot.SessionKey, hash string,
) (bot.Approval, bool, error) {
	found, err := listApprovals(ctx, r.q, grantedQuery, session, hash)
	if err != nil || len(found) == 0 {
		return bot.Approval{}, false, r.wrapProblem("read grants", err)
	}
	return found[0], true, nil
}

const askedQuery = `SELECT ` + approvalColumns + ` FROM approval
WHERE channel = ? AND bot = ? AND tool = ? AND created > ? ORDER BY created DESC, n DESC LIMIT CAST(? AS INTEGER)`

// AskedSince implements bot.Approvals.
func (r *reader) AskedSince(
	ctx context.Context, channel, botID, tool string, since time.Time, limit int,
) ([]bot.Approval, error) {
	found, err := listApprovals(ctx, r.q, askedQuery, channel, botID, tool, toNanos(since), atMost(limit))
	return found, r.wrapProblem("list questions", err)
}

// countsQuery counts each kind of open work by the conditions of its own partial index; see ofBot.
const countsQuery = `SELECT
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'running' AND ` + ofBot + `),
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'parked' AND ` + ofBot + `),
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'waiting' AND ` + ofBot + `),
(SELECT COUNT(*) FROM inbox WHERE state = 'waiting' AND express = 0 AND session <> '' AND ` + ofBot + `)
+ (SELECT COUNT(*) FROM inbox WHERE state = 'waiting' AND (express = 1 OR session = '') AND ` + ofBot + `),
(SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND ` + ofBot + `)
+ (SELECT COUNT(*) FROM outbox WHERE state = 'sending' AND ` + ofBot + `),
(SELECT COUNT(*) FROM outbox WHERE state = 'unknown' AND ` + ofBot + `),
(SELECT COUNT(*) FROM lane WHERE channel = ? AND bot = ?),
(SELECT COUNT(*) FROM inbox WHERE state = 'dead' AND ` + ofBot + `)`

// Counts implements bot.Inspector.
func (r *reader) Counts(ctx context.Context, channel, botID string) (bot.Counts, error) {
	var c bot.Counts
	_, err := r.q.queryOne(ctx, func(scan scanner) error {
		return scan(&c.Running, &c.Parked, &c.Waiting, &c.Queued, &c.Undelivered, &c.Lost, &c.Sessions, &c.DeadLetters)
	}, countsQuery, slices.Repeat([]any{channel, botID}, strings.Count(countsQuery, "?")/2)...)
	return c, r.wrapProblem("count", err)
}

const (
	chargesQuery = `SELECT key, scope, unit, day, n FROM charge WHERE day >= ? ORDER BY day`
	usageQuery   = `SELECT '', scope, unit, day, n FROM usage WHERE day >= ? ORDER BY day`
)

const usedQuery = `SELECT (SELECT COALESCE(SUM(n), 0) FROM json_each(?1) AS days CROSS JOIN charge ON day = days.value AND scope = ?2 AND unit = ?3)
+ (SELECT COALESCE(SUM(n), 0) FROM json_each(?1) AS days CROSS JOIN usage ON day = days.value AND scope = ?2 AND unit = ?3)`

// Charges implements bot.Inspector.
func (r *reader) Charges(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	var charges []bot.Charge
	for _, query := range []string{usageQuery, chargesQuery} {
		some, err := listRows(ctx, r.q, scanCharge, query, sinceDay)
		if err != nil {
			return nil, r.wrapProblem("list charges", err)
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

const rowsQuery = `SELECT id, ` + rowColumns + ` FROM outbox WHERE session = ? ORDER BY id DESC
	LIMIT CAST(? AS INTEGER)`

// Used implements bot.Inspector.
func (r *reader) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	list, err := json.Marshal(days)
	if err != nil {
		return 0, r.wrapProblem("name days", err)
	}
	var sum int64
	_, err = r.q.queryOne(ctx, func(scan scanner) error { return scan(&sum) }, usedQuery, string(list), scope, unit)
	return sum, r.wrapProblem("add charges up", err)
}

// Rows implements bot.Inspector.
func (r *reader) Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error) {
	rows, err := listRows(ctx, r.q, scanRow, rowsQuery, session, atMost(limit))
	slices.Reverse(rows)
	return rows, r.wrapProblem("list rows", err)
}

const lanesQuery = `SELECT ` + laneColumns + ` FROM lane WHERE channel = ? AND bot = ? ORDER BY session
	LIMIT CAST(? AS INTEGER)`

// Lanes implements bot.Inspector.
func (r *reader) Lanes(ctx context.Context, channel, botID string, limit int) ([]bot.Lane, error) {
	lanes, err := listRows(ctx, r.q, scanLane, lanesQuery, channel, botID, atMost(limit))
	return lanes, r.wrapProblem("list lanes", err)
}

const arrivalOfQuery = `SELECT ` + arrivalColumns + ` FROM inbox WHERE channel = ? AND bot = ? AND id = ?`

// ArrivalOf implements bot.Inspector.
func (r *reader) ArrivalOf(ctx context.Context, channel, botID, id string) (bot.Arrival, error) {
	found, err := listRows(ctx, r.q, scanArrival, arrivalOfQuery, channel, botID, id)
	if err == nil && len(found) == 0 {
		return bot.Arrival{}, fmt.Errorf("arrival %s: %w", id, bot.ErrNotFound)
	}
	if err != nil {
		return bot.Arrival{}, r.wrapProblem("read arrival", err)
	}
	return found[0], nil
}

const deadQuery = `SELECT ` + arrivalColumns + ` FROM inbox WHERE state = 'dead' ORDER BY seq DESC
	LIMIT CAST(? AS INTEGER)`

// DeadLetters implements bot.Inspector.
func (r *reader) DeadLetters(ctx context.Context, limit int) ([]bot.Arrival, error) {
	arrivals, err := listRows(ctx, r.q, scanArrival, deadQuery, atMost(limit))
	return arrivals, r.wrapProblem("list dead letters", err)
}
