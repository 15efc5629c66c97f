package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/bot/privacy/table"
)

const (
	// freeLane takes a lane from its holder, as a move does.
	freeLane   = `UPDATE lane SET fence = fence + 1, owner = '', until = 0, version = version + 1 WHERE session = $1`
	endJournal = `DELETE FROM journal WHERE session = $1`
	// moveSum is one statement, and adds only what it deletes: of two processes that move a
	// sum, the second finds nothing.
	moveSum = `WITH gone AS (DELETE FROM usage WHERE day = $2 AND scope = $3 AND unit = $4 RETURNING day, unit, n)
INSERT INTO usage (day, scope, unit, n) SELECT day, $1, unit, n FROM gone
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
)

var (
	_ table.Store  = (*Store)(nil)
	_ table.Reader = (*Reader)(nil)
)

// Alter implements table.Store.
func (s *Store) Alter(ctx context.Context, changes []table.Alteration) (altered int, err error) {
	done, err := s.begin()
	if err != nil {
		return 0, err
	}
	defer done()
	err = s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		altered = 0
		for i := range changes {
			did, err := alter(ctx, tx, &changes[i])
			if err != nil {
				return fmt.Errorf("alter %s: %w", changes[i].Table.Name, err)
			}
			if did {
				altered++
			}
		}
		return nil
	})
	return altered, unavailable(s.where, "write", err)
}

// alter makes one alteration if the row is still as it was read.
func alter(ctx context.Context, tx pgx.Tx, a *table.Alteration) (bool, error) {
	name, deleted := a.Table.Name, a.Set == nil && a.Null == nil
	scope, renamed := a.Set["scope"]
	switch {
	case name == "lane" && !deleted && len(a.Set)+len(a.Null) == 0:
		return affected(tx.Exec(ctx, freeLane, a.Row["session"]))
	case name == "blob_ref" && deleted:
		id, err := strconv.ParseInt(a.Row["blob"], 10, 64)
		if err != nil {
			return false, err
		}
		return true, dropRef(ctx, tx, a.Row["session"], id, math.MaxInt64)
	case name == "usage" && renamed:
		return affected(tx.Exec(ctx, moveSum, scope, a.Row["day"], a.Row["scope"], a.Row["unit"]))
	}
	done, err := rewrite(ctx, tx, a, deleted)
	if err != nil || !done || name != "lane" {
		return done, err
	}
	then := freeLane
	if deleted {
		then = endJournal
	}
	_, err = tx.Exec(ctx, then, a.Row["session"])
	return true, err
}

// Scrub implements table.Store: PostgreSQL overwrites deleted rows by itself, once autovacuum has found their place
// and it is used again. Nothing here can do more without locking whole tables.
func (s *Store) Scrub(context.Context) error { return nil }
