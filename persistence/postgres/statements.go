package postgres

import "github.com/zephbot/zephbot/persistence/reading"

// The statements of a Change. Each that relies on an assumption calls must. A $n that can be provisional is looked up.
const (
	makeApplied = `INSERT INTO applied (change, made, at) VALUES ($1, true,
		(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint)`

	noneArrived = `SELECT must(NOT EXISTS (SELECT 1 FROM inbox
		JOIN unnest($1::text[], $2::text[], $3::text[]) AS key (channel, bot, id)
	ON inbox.channel = key.channel AND inbox.bot = key.bot AND inbox.id = key.id), 'ZB001', 'an arrival is known')`
	noneWaiting = `SELECT must(NOT EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting' AND NOT express
		AND session <> '' AND session = $1),
	'ZB001', 'an arrival waits')`
	stillWaiting = `SELECT must(EXISTS (SELECT 1 FROM inbox WHERE seq = $1
		AND state = 'waiting'), 'ZB001', 'an arrival waits no more')`
	noneKeyed = `SELECT must(NOT EXISTS (SELECT 1 FROM outbox WHERE key = ANY($1::text[])
		AND key <> ''), 'ZB001', 'a key is known')`
	noneAsked = `SELECT must(NOT EXISTS (SELECT 1 FROM approval
		WHERE id = ANY($1::text[])), 'ZB001', 'a question is known')`
	noneOpen = `SELECT must(NOT EXISTS (SELECT 1 FROM approval WHERE state = 'pending'
		AND session = $1), 'ZB001', 'a question is open')`
	noneNamed = `SELECT must(NOT EXISTS (SELECT 1 FROM approval WHERE state = 'pending' AND short = $1
	AND channel = $2 AND bot = $3 AND surface = $4 AND chat = $5), 'ZB001', 'a short name is in use')`
	// lockNames prevents two questions from getting the same short name in a chat, and one call from getting two
	// outputs.
	lockNames = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`

	// insertLane starts with a version that no earlier lane of this session can have had, because a deleted one may
	// still be remembered.
	insertLane = `INSERT INTO lane (` + reading.LaneColumns + `, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, ` +
		arrivalNumber14 + `, $15, $16, $17, $18, $19, ` + rowNumber20 + `, $21, $22, $23)`
	updateLane = `WITH w AS (UPDATE lane
		SET channel = $2, bot = $3, surface = $4, chat = $5, thread = $6, grp = $7, workspace = $8, state = $9,
	fence = $10, owner = $11, until = $12, turn = $13, arrival = ` + arrivalNumber14 + `, since = $15, not_before = $16,
	failing = $17, stop = $18, last = $19,
	live = ` + rowNumber20 + `, notice = $21, caller = $22, version = version + 1 WHERE session = $1
	AND version = $23 RETURNING 1)
	SELECT must(EXISTS (SELECT 1 FROM w), 'ZB001', 'a lane was written')`
	arrivalNumber14 = `CASE WHEN $14::bigint <= -1099511627776
		THEN current_setting('zephbot.arrival' || (-1099511627776 - $14))::bigint ELSE $14 END`
	rowNumber20 = `CASE WHEN $20::bigint <= -1099511627776
		THEN current_setting('zephbot.row' || (-1099511627776 - $20))::bigint ELSE $20 END`
	keepLane = `WITH w AS (SELECT 1 FROM lane WHERE session = $1 AND version = $2 FOR SHARE)
	SELECT must(EXISTS (SELECT 1 FROM w), 'ZB001', 'a lane was written')`
	noLane = `SELECT must(NOT EXISTS (SELECT 1 FROM lane WHERE session = $1), 'ZB001', 'a lane was made')`

	insertArrival = `WITH w AS (INSERT INTO inbox (channel, bot, id, session, express, raw, at, source)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $9) RETURNING seq)
	SELECT seq, set_config($8, seq::text, true) FROM w`
	moveArrival = `WITH w AS (UPDATE inbox SET state = $2, attempts = $3, problem = $4, finished = $5
	WHERE seq = $1 AND state = $6 AND attempts = $7 RETURNING 1) SELECT must(EXISTS (SELECT 1 FROM w), 'ZB001', 'an arrival moved on')`
	// finishArrival is for arrivals that are only assumed to be waiting: nothing else is known about them.
	finishArrival = `WITH w AS (UPDATE inbox SET state = $2, finished = $3 WHERE seq = $1 AND state = 'waiting'
		RETURNING 1)
	SELECT must(EXISTS (SELECT 1 FROM w), 'ZB001', 'an arrival waits no more')`

	replaceArrival = `UPDATE inbox SET source = $2, raw = $3 WHERE seq = $1`

	insertEntries = `INSERT INTO journal (session, n, reset, body) SELECT $1, n, reset, body
		FROM unnest($2::bigint[], $3::boolean[], $4::bytea[]) AS e (n, reset, body)`

	insertQuestion = `INSERT INTO approval (` + reading.ApprovalColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
	$18, $19, $20, $21, $22, $23, $24, ` + rowNumber25 + `)`
	rowNumber25 = `CASE WHEN $25::bigint <= -1099511627776
		THEN current_setting('zephbot.row' || (-1099511627776 - $25))::bigint ELSE $25 END`
	moveQuestion = `UPDATE approval
		SET state = $2, scope = $3, decider = $4, name = $5, votes = $6, decided = $7, card = ` + rowNumber8 + `
		WHERE id = $1`
	rowNumber8 = `CASE WHEN $8::bigint <= -1099511627776
		THEN current_setting('zephbot.row' || (-1099511627776 - $8))::bigint ELSE $8 END`

	insertRow = `WITH w AS (INSERT INTO outbox (session, turn, channel, bot, surface, chat, thread, grp, purpose,
		content, reply_to, edit, edit_row, query,
	alert, key, state, message, attempts, unconfirmed, resent, not_before, created, problem, finished, owner, change)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
	$24, $25, $26, $27) RETURNING id)
	SELECT id, set_config($28, id::text, true) FROM w`
	moveRow = `WITH w AS (UPDATE outbox
		SET state = $2, message = $3, not_before = $4, attempts = $5, unconfirmed = $6, resent = $7, problem = $8,
		finished = $9
	WHERE id = $1 AND state = $10 AND message = $11 AND not_before = $12 AND attempts = $13 AND resent = $14 RETURNING 1)
	SELECT must(EXISTS (SELECT 1 FROM w), 'ZB001', 'a row moved on')`

	deleteFact = `DELETE FROM fact WHERE bucket = $1 AND key = $2`
	setFact    = `INSERT INTO fact (bucket, key, value, expires) VALUES ($1, $2, $3, $4)
	ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`
	insertFact    = `INSERT INTO fact (bucket, key, value, expires) VALUES ($1, $2, $3, $4)`
	insertCharges = `INSERT INTO charge (key, scope, unit, day, n)
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) ON CONFLICT (key) DO NOTHING`
	setAside = `SELECT put_aside($1, $2, $3, $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], ` +
		`$9::text[], $10::text[], $11::bigint[], $12::bigint[])`
	resetOverflow = `DELETE FROM tool_overflow WHERE session = $1`
)
