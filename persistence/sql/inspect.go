package sql

import (
	"context"
	"encoding/json"

	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	approvalQuery   = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE id = ?`
	approvalOfQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE session = ? AND call = ?
		ORDER BY n DESC LIMIT 1`
	openQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' AND session = ?
		ORDER BY n`
	openAllQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' ORDER BY n`
	grantedQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval
WHERE state = 'approved' AND scope = 'session' AND session = ? AND hash = ? ORDER BY n DESC LIMIT 1`
	askedQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval
WHERE channel = ? AND bot = ? AND tool = ? AND created > ? ORDER BY created DESC, n DESC LIMIT CAST(? AS INTEGER)`

	arrivalOfQuery = `SELECT ` + reading.ArrivalColumns + ` FROM inbox WHERE channel = ? AND bot = ? AND id = ?`
	deadQuery      = `SELECT ` + reading.ArrivalColumns + ` FROM inbox WHERE state = 'dead' ORDER BY seq DESC
	LIMIT CAST(? AS INTEGER)`

	// countsQuery counts each kind of open work by the conditions of its own partial index; see ofBot.
	countsQuery = `SELECT
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'running' AND ` + ofFirst + `),
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'parked' AND ` + ofFirst + `),
(SELECT COUNT(*) FROM lane WHERE state <> 'idle' AND state = 'waiting' AND ` + ofFirst + `),
(SELECT COUNT(*) FROM inbox WHERE state = 'waiting' AND express = 0 AND session <> '' AND ` + ofFirst + `)
+ (SELECT COUNT(*) FROM inbox WHERE state = 'waiting' AND (express = 1 OR session = '') AND ` + ofFirst + `),
(SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND ` + ofFirst + `)
+ (SELECT COUNT(*) FROM outbox WHERE state = 'sending' AND ` + ofFirst + `),
(SELECT COUNT(*) FROM outbox WHERE state = 'unknown' AND ` + ofFirst + `),
(SELECT COUNT(*) FROM lane WHERE channel = ?1 AND bot = ?2),
(SELECT COUNT(*) FROM inbox WHERE state = 'dead' AND ` + ofFirst + `)`
	lanesQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE channel = ? AND bot = ? ORDER BY session
	LIMIT CAST(? AS INTEGER)`

	chargesQuery = `SELECT key, scope, unit, day, n FROM charge WHERE day >= ? ORDER BY day`
	chargeSums   = `SELECT '', scope, unit, day, SUM(n) FROM charge WHERE day >= ? GROUP BY day, scope, unit`
	usageQuery   = `SELECT '', scope, unit, day, n FROM usage WHERE day >= ? ORDER BY day`

	rowsQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE session = ? ORDER BY id DESC
	LIMIT CAST(? AS INTEGER)`
	openRowsQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox
WHERE (state = 'pending' OR state = 'sending' OR state = 'unknown') AND channel = ? AND bot = ? AND state = ? AND id < ?
ORDER BY id DESC LIMIT CAST(? AS INTEGER)`
	failedRowsQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox
WHERE state = 'dead' AND problem <> '' AND purpose IN ('final', 'reply', 'question') AND channel = ? AND bot = ? AND id < ?
ORDER BY id DESC LIMIT CAST(? AS INTEGER)`

	// backlogColumns are those of an arrival, without its content.
	backlogColumns = `seq, channel, bot, id, source, session, express, NULL AS raw, at, attempts, problem`
	// backlogQuery reads each kind of waiting arrivals by its own partial index; the planner would rather walk the table
	// by seq when it knows nothing of it.
	backlogQuery = `SELECT ` + reading.ArrivalColumns + ` FROM (
SELECT ` + backlogColumns +
		` FROM inbox INDEXED BY inbox_lane WHERE state = 'waiting' AND express = 0 AND session <> '' AND ` +
		ofFirst + ` AND +seq > ?3
UNION ALL
SELECT ` + backlogColumns +
		` FROM inbox WHERE state = 'waiting' AND (express = 1 OR session = '') AND ` + ofFirst + ` AND +seq > ?3
) ORDER BY seq LIMIT CAST(?4 AS INTEGER)`
)

// inspecting are the queries of reading.Reader.
var inspecting = &reading.Queries{
	Approval: approvalQuery, ApprovalOf: approvalOfQuery, Open: openQuery, OpenAll: openAllQuery,
	Granted: grantedQuery, Asked: askedQuery,
	Arrival: arrivalOfQuery, Next: nextQuery, Express: expressQuery, Backlog: backlogQuery, DeadLetters: deadQuery,
	Counts: countsQuery, Lanes: lanesQuery, Stops: stopsQuery,
	Journal: journalQuery, Past: pastQuery,
	Row: rowQuery, RowOf: rowOfQuery, Rows: rowsQuery, OpenRows: openRowsQuery, FailedRows: failedRowsQuery,
	Charges: chargesQuery, ChargeSums: chargeSums, Usage: usageQuery,
	Fact: factQuery, Facts: factsQuery,
}

const usedQuery = `SELECT (SELECT COALESCE(SUM(n), 0) FROM json_each(?1) AS days CROSS JOIN charge ON day = days.value AND scope = ?2 AND unit = ?3)
+ (SELECT COALESCE(SUM(n), 0) FROM json_each(?1) AS days CROSS JOIN usage ON day = days.value AND scope = ?2 AND unit = ?3)`

// Used implements bot.Inspector.
func (r *reader) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	list, err := json.Marshal(days)
	if err != nil {
		return 0, r.wrapProblem("name days", err)
	}
	var sum int64
	_, err = r.q.queryOne(ctx, func(scan reading.Scan) error { return scan(&sum) }, usedQuery, string(list), scope, unit)
	return sum, r.wrapProblem("add charges up", err)
}
