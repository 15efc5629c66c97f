package sql

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/bot"
)

const (
	keyQuery  = `SELECT id FROM outbox WHERE key = ? AND key <> ''`
	insertRow = `INSERT INTO outbox (` + rowColumns + `, finished)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE key = ? AND key <> '')`
	findRow = `SELECT id FROM outbox WHERE id = ?`
	// updateRow takes the states to come from five times: there are not more.
	updateRow = `UPDATE outbox SET state = ?, message = CASE WHEN ? <> '' THEN ? ELSE message END, not_before = ?,
attempts = attempts + ?, resent = CASE WHEN resent = 0 THEN ? ELSE resent END, problem = ?, finished = ?
WHERE id = ? AND state IN (?, ?, ?, ?, ?)`
	tieCard = `UPDATE approval SET card = ? WHERE id = ?`
)

// rowStates is how many states a row may be in.
const rowStates = 5

func (t *step) send(ctx context.Context) error {
	for i := range t.change.Send {
		row := t.change.Send[i]
		if row.State == "" {
			row.State = bot.Pending
		}
		if row.Created.IsZero() {
			row.Created = t.now()
		}
		id, doubled, err := t.insertRow(ctx, &row)
		if err != nil {
			return fmt.Errorf("store row: %w", err)
		}
		t.applied.Rows = append(t.applied.Rows, id)
		t.applied.Skipped = append(t.applied.Skipped, doubled)
	}
	return nil
}

func (t *step) insertRow(ctx context.Context, row *bot.Row) (id int64, doubled bool, err error) {
	values, err := rowValues(row)
	if err != nil {
		return 0, false, err
	}
	id, err = t.q.inserted(ctx, insertRow, append(values, t.finished(row.State), row.Key)...)
	if err != nil || id != 0 {
		return id, false, err
	}
	doubled, err = t.q.one(ctx, func(scan scanner) error { return scan(&id) }, keyQuery, row.Key)
	return id, doubled, err
}

// finished is since when a row in this state needs nothing any more; 0 = it does.
func (t *step) finished(state bot.RowState) int64 {
	if state == bot.Sent || state == bot.Dead {
		return nanos(t.now())
	}
	return 0
}

func (t *step) cards(ctx context.Context) error {
	for _, card := range t.change.Cards {
		n, err := t.q.changed(ctx, tieCard, t.applied.Rows[card.Send], card.Approval)
		if err != nil {
			return fmt.Errorf("tie card: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("card of question %s: %w", card.Approval, bot.ErrNotFound)
		}
	}
	return nil
}

func (t *step) rowUpdates(ctx context.Context) error {
	for i := range t.change.Rows {
		u := &t.change.Rows[i]
		moved, err := t.rowUpdate(ctx, u)
		if err != nil {
			return fmt.Errorf("update row: %w", err)
		}
		if !moved {
			found, err := t.q.one(ctx, func(scan scanner) error { return scan(new(int64)) }, findRow, u.ID)
			if err != nil {
				return fmt.Errorf("find row: %w", err)
			}
			if !found {
				return fmt.Errorf("row %d: %w", u.ID, bot.ErrNotFound)
			}
		}
		t.applied.Moved = append(t.applied.Moved, moved)
	}
	return nil
}

// rowUpdate says whether the row was in one of the states to come from.
func (t *step) rowUpdate(ctx context.Context, u *bot.RowUpdate) (bool, error) {
	args := []any{
		string(u.To), u.Message, u.Message, nanos(u.NotBefore), u.Attempts, nanos(u.Doubt), u.Problem, t.finished(u.To), u.ID,
	}
	for i := range rowStates {
		args = append(args, string(u.From[min(i, len(u.From)-1)]))
	}
	n, err := t.q.changed(ctx, updateRow, args...)
	return n > 0, err
}
