package postgres

import (
	"context"

	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	approvalQuery   = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE id = $1`
	approvalOfQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE session = $1 AND call = $2 ORDER BY n DESC
		LIMIT 1`
	openQuery    = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' AND session = $1 ORDER BY n`
	openAllQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' ORDER BY n`
	grantedQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval
WHERE state = 'approved' AND scope = 'session' AND session = $1 AND hash = $2 ORDER BY n DESC LIMIT 1`
	askedQuery = `SELECT ` + reading.ApprovalColumns + ` FROM approval
WHERE channel = $1 AND bot = $2 AND tool = $3 AND created > $4 ORDER BY created DESC, n DESC LIMIT $5`
)

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

const (
	chargesQuery = `SELECT key, scope, unit, day, n FROM charge WHERE day >= $1 ORDER BY day`
	usageQuery   = `SELECT '', scope, unit, day, n FROM usage WHERE day >= $1 ORDER BY day`
	usedQuery    = `SELECT ((SELECT COALESCE(SUM(n), 0) FROM charge WHERE day = ANY($1::text[]) AND scope = $2 AND unit = $3)
+ (SELECT COALESCE(SUM(n), 0) FROM usage WHERE day = ANY($1::text[]) AND scope = $2 AND unit = $3))::bigint`
)

// Used implements bot.Inspector.
func (r *reader) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	var sum int64
	_, err := reading.One(ctx, r, func(scan reading.Scan) error { return scan(&sum) }, usedQuery, days, scope, unit)
	return sum, r.problem("add charges up", err)
}

const (
	rowsQuery  = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE session = $1 ORDER BY id DESC LIMIT $2`
	lanesQuery = `SELECT ` + reading.LaneColumns + ` FROM lane WHERE channel = $1 AND bot = $2 ORDER BY session LIMIT $3`
	deadQuery  = `SELECT ` + reading.ArrivalColumns + ` FROM inbox WHERE state = 'dead' ORDER BY seq DESC LIMIT $1`
)

const arrivalOfQuery = `SELECT ` + reading.ArrivalColumns + ` FROM inbox WHERE channel = $1 AND bot = $2 AND id = $3`

const (
	chargeSums = `SELECT '', scope, unit, day, SUM(n)::bigint FROM charge WHERE day >= $1 GROUP BY day, scope, unit`

	// backlogQuery reads each kind of waiting arrivals by its own partial index, without the content.
	backlogColumns = `seq, channel, bot, id, source, session, express, NULL::bytea AS raw, at, attempts, problem`
	backlogQuery   = `SELECT ` + reading.ArrivalColumns + ` FROM (
SELECT ` + backlogColumns +
		` FROM inbox WHERE state = 'waiting' AND NOT express AND session <> '' AND channel = $1 AND bot = $2
	AND seq > $3
UNION ALL
SELECT ` + backlogColumns +
		` FROM inbox WHERE state = 'waiting' AND (express OR session = '') AND channel = $1 AND bot = $2
	AND seq > $3
) AS waiting ORDER BY seq LIMIT $4`

	openRowsQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE state IN ('pending', 'sending', 'unknown')
	AND channel = $1 AND bot = $2 AND state = $3 AND id < $4 ORDER BY id DESC LIMIT $5`
	failedRowsQuery = `SELECT id, ` + reading.RowColumns + ` FROM outbox WHERE state = 'dead' AND problem <> ''
	AND purpose IN ('final', 'reply', 'question') AND channel = $1 AND bot = $2 AND id < $3 ORDER BY id DESC LIMIT $4`
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
