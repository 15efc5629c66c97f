package sql

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

const (
	keyQuery  = `SELECT id FROM outbox WHERE key = ? AND key <> ''`
	insertRow = `INSERT INTO outbox (` + rowColumns + `, finished)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`
	rowStateQuery = `SELECT state FROM outbox WHERE id = ?`
	updateRow     = `UPDATE outbox SET state = ?, message = CASE WHEN ? <> '' THEN ? ELSE message END, not_before = ?,
attempts = attempts + ?, resent = CASE WHEN resent = 0 THEN ? ELSE resent END, problem = ?, finished = ? WHERE id = ?`
	tieCard = `UPDATE approval SET card = ? WHERE id = ?`
)

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
	read := func(scan scanner) error { return scan(&id) }
	if row.Key != "" {
		doubled, err = t.q.one(ctx, read, keyQuery, row.Key)
		if err != nil || doubled {
			return id, doubled, err
		}
	}
	values, err := rowValues(row)
	if err != nil {
		return 0, false, err
	}
	_, err = t.q.one(ctx, read, insertRow, append(values, t.finished(row.State))...)
	return id, false, err
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
		var state bot.RowState
		found, err := t.q.one(ctx, func(scan scanner) error { return scan(&state) }, rowStateQuery, u.ID)
		if err != nil {
			return fmt.Errorf("read row: %w", err)
		}
		if !found {
			return fmt.Errorf("row %d: %w", u.ID, bot.ErrNotFound)
		}
		moved := slices.Contains(u.From, state)
		t.applied.Moved = append(t.applied.Moved, moved)
		if !moved {
			continue
		}
		err = t.q.exec(ctx, updateRow,
			string(u.To), u.Message, u.Message, nanos(u.NotBefore), u.Attempts, nanos(u.Doubt), u.Problem, t.finished(u.To), u.ID)
		if err != nil {
			return fmt.Errorf("update row: %w", err)
		}
	}
	return nil
}
