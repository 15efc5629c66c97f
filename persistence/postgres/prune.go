package postgres

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	// nextQuestions lists questions in the order of asking, with whether their turn continues and when their
	// conversation was cleared.
	nextQuestions = `SELECT a.n, a.state, a.scope, a.created, a.decided, COALESCE(lane.turn <> ''
		AND lane.turn = a.turn, false), fact.value
	FROM approval AS a LEFT JOIN lane ON lane.session = a.session LEFT JOIN fact ON fact.bucket = $3
	AND fact.key = a.session
	WHERE a.n > $1 ORDER BY a.n LIMIT $2`
	deleteQuestions = `DELETE FROM approval WHERE n = ANY($1::bigint[]) AND state <> 'pending'`

	// aloneQuery lists conversations that consist only of their first entry, on which no process works and to which
	// nothing refers.
	aloneQuery = `SELECT began.session, began.n, began.body, lane.version FROM journal AS began
		JOIN lane ON lane.session = began.session
	WHERE began.reset AND (began.session, began.n) > ($1, $2) AND lane.owner = '' AND lane.turn = ''
	AND lane.state = 'idle'
	AND NOT EXISTS (SELECT 1 FROM journal WHERE session = began.session AND n <> began.n)
	AND NOT EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting' AND NOT express AND session <> ''
	AND session = began.session)
	AND NOT EXISTS (SELECT 1 FROM approval WHERE session = began.session) AND NOT EXISTS (SELECT 1 FROM outbox
	WHERE session = began.session)
	AND NOT EXISTS (SELECT 1 FROM tool_overflow WHERE session = began.session) ORDER BY began.session, began.n LIMIT $3`
	// deleteAlone deletes a lane that is still as it was read, with the entry.
	deleteAlone = `WITH gone AS (DELETE FROM lane WHERE session = $1 AND version = $2 RETURNING session)
	DELETE FROM journal WHERE session IN (SELECT session FROM gone) AND n = $3`

	deleteSums = `DELETE FROM usage WHERE ctid = ANY(ARRAY(SELECT ctid FROM usage WHERE day < $1 ORDER BY day
		LIMIT $2))`
)

// asked is a question with the data that pruning needs.
type asked struct {
	n                int64
	state            bot.ApprovalState
	scope            string
	created, decided time.Time
	goesOn           bool   // the turn that asked continues
	anew             []byte // when its conversation was cleared (RFC 3339); none = never
}

func scanAsked(scan reading.Scan) (asked, error) {
	var a asked
	return a, scan(&a.n, &a.state, &a.scope, reading.Stamp{To: &a.created}, reading.Stamp{To: &a.decided}, &a.goesOn, &a.anew)
}

// needed reports whether a question is open, was decided after a time, belongs to a turn that continues, or approved
// something for a conversation that continues.
func (a *asked) needed(until time.Time) bool {
	if a.state == bot.Open || a.decided.After(until) || a.goesOn {
		return true
	}
	if a.state != bot.Approved || a.scope != bot.Session {
		return false
	}
	anew, err := time.Parse(time.RFC3339Nano, string(a.anew))
	return err != nil || a.decided.After(anew)
}

// pruneQuestions deletes questions that were decided long ago and are not needed.
func (s *Store) pruneQuestions(ctx context.Context, until time.Time, count *int64) error {
	for after := int64(0); ; {
		found, err := reading.List(ctx, &s.reader, scanAsked, nextQuestions, after, int64(sweepBatch), bot.ResetBucket)
		if err != nil {
			return s.problem("list questions", err)
		}
		over := len(found) < sweepBatch
		var old []int64
		for i := range found {
			if found[i].created.After(until) {
				over = true // later questions were decided later
				break
			}
			if after = found[i].n; !found[i].needed(until) {
				old = append(old, after)
			}
		}
		if len(old) > 0 {
			n, err := s.sweepOnce(ctx, deleteQuestions, old)
			if err != nil {
				return err
			}
			*count += n
		}
		if over {
			return nil
		}
	}
}

// alone is a conversation in which nothing was said since it was cleared.
type alone struct {
	session string
	n       int64
	reset   journal.Entry
	version int64
}

func scanAlone(scan reading.Scan) (alone, error) {
	var a alone
	return a, scan(&a.session, &a.n, reading.Document{To: &a.reset}, &a.version)
}

// pruneLanes deletes the lanes of conversations that were cleared long ago and have had no message since. A
// conversation that begins with a summary is not empty.
func (s *Store) pruneLanes(ctx context.Context, until time.Time, count *int64) error {
	for at := (alone{}); ; {
		found, err := reading.List(ctx, &s.reader, scanAlone, aloneQuery, at.session, at.n, int64(sweepBatch))
		if err != nil {
			return s.problem("list lanes", err)
		}
		for i := range found {
			at = found[i]
			if !at.reset.Anew() || at.reset.Text != "" || at.reset.At.IsZero() || at.reset.At.After(until) {
				continue
			}
			n, err := s.sweepOnce(ctx, deleteAlone, at.session, at.version, at.n)
			if err != nil {
				return err
			}
			*count += n
		}
		if len(found) < sweepBatch {
			return nil
		}
	}
}
