package sql

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The inserts of rows with unique keys check the key first, because a conflict would use up a number.
const (
	insertArrival = `INSERT INTO inbox (seq, channel, bot, id, source, session, express, raw, at)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE channel = ? AND bot = ? AND id = ?)`
	insertFirst = insertArrival + `
AND NOT EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting' AND express = 0 AND session <> ''
	AND session = CAST(? AS TEXT))`
	insertRow = `INSERT INTO outbox (id, ` + reading.RowColumns + `, finished)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE key = ? AND key <> '')`
	insertApproval = `INSERT INTO approval (n, ` + reading.ApprovalColumns + `)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM approval WHERE id = ?)`
	insertEntry = `INSERT INTO journal (session, n, reset, body) VALUES (?, ?, ?, ?)`

	updateArrival  = `UPDATE inbox SET state = ?, attempts = ?, problem = ?, finished = ? WHERE seq = ?`
	replaceArrival = `UPDATE inbox SET source = ?, raw = ? WHERE seq = ?`
	updateApproval = `UPDATE approval
		SET state = ?, scope = ?, decider = ?, name = ?, votes = ?, decided = ?, card = ? WHERE id = ?`
	updateRow = `UPDATE outbox
		SET state = ?, message = ?, not_before = ?, attempts = ?, unconfirmed = ?, resent = ?, problem = ?,
		finished = ? WHERE id = ?`

	deleteFact = `DELETE FROM fact WHERE bucket = ? AND key = ?`
	setFact    = `INSERT INTO fact (bucket, key, value, expires) VALUES (?, ?, ?, ?)
ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`
	// all of a Change at once: its parameter is a list of rows in JSON
	insertCharges = `INSERT INTO charge (key, scope, unit, day, n)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?) WHERE true ON CONFLICT (key) DO NOTHING`
)

// saveResult writes a result, beginning with the rows that a wrong assumption would refuse.
func (t *step) saveResult(ctx context.Context, r *state.Result) error {
	for _, part := range []func(*step, context.Context, *state.Result) error{
		(*step).saveArrive, (*step).saveReplace, (*step).saveSend, (*step).saveAsk,
		(*step).saveEntries, (*step).saveArrivals, (*step).saveQuestions,
		(*step).saveRows, (*step).saveFacts, (*step).saveCharges, (*step).saveAsides,
	} {
		if err := part(t, ctx, r); err != nil {
			return err
		}
	}
	for i := range r.Lanes {
		t.memory.putLane(&r.Lanes[i].New)
	}
	return nil
}

// insertUnique runs an insert that a unique key can refuse.
func (t *step) insertUnique(ctx context.Context, query string, args ...any) error {
	n, err := t.q.execChanged(ctx, query, args...)
	switch {
	case err != nil || n > 0:
		return err
	case t.sure:
		return fmt.Errorf("the key of a new row is in use: %.40s", query)
	}
	return errGuess
}

func (t *step) saveArrive(ctx context.Context, r *state.Result) error {
	for _, arrived := range r.Arrive {
		a := &t.change.Arrive[arrived.Index]
		query, args := insertArrival, []any{
			arrived.Seq, a.Channel, a.Bot, a.ID, string(a.Source), string(a.Session), a.Express,
			reading.OrNull(a.Raw), reading.Nanos(a.At),
			a.Channel, a.Bot, a.ID,
		}
		if t.needs.Waiting != "" && !t.sure {
			query, args = insertFirst, append(args, t.needs.Waiting)
		}
		if err := t.insertUnique(ctx, query, args...); err != nil {
			return fmt.Errorf("store arrival: %w", err)
		}
		t.memory.numbers.arrival = arrived.Seq
		t.memory.keepArrival(arrived.Seq, state.Arrival{State: state.Waiting})
	}
	return nil
}

func (t *step) saveReplace(ctx context.Context, r *state.Result) error {
	for _, i := range r.Replace {
		c := &t.change.Replace[i]
		if err := t.q.execOne(ctx, replaceArrival, string(c.Source), reading.OrNull(c.Raw), c.Seq); err != nil {
			return fmt.Errorf("replace arrival: %w", err)
		}
	}
	return nil
}

func (t *step) saveSend(ctx context.Context, r *state.Result) error {
	for _, made := range r.Send {
		row := &t.change.Send[made.Index]
		values := reading.RowValues(row, &made.Delivery, t.contents[made.Index], made.Created)
		args := append(append([]any{made.ID}, values...), reading.Nanos(made.Delivery.Finished), row.Key)
		if err := t.insertUnique(ctx, insertRow, args...); err != nil {
			return fmt.Errorf("store row: %w", err)
		}
		t.memory.numbers.row = made.ID
		t.memory.keepRow(made.ID, made.Delivery)
	}
	return nil
}

func (t *step) saveAsk(ctx context.Context, r *state.Result) error {
	for i := range r.Ask {
		q := &r.Ask[i].Question
		votes, err := reading.EncodeVotes(q.Votes)
		if err != nil {
			return err
		}
		args := append(append([]any{q.N}, reading.ApprovalValues(&q.Approval, string(votes))...), q.ID)
		if err := t.insertUnique(ctx, insertApproval, args...); err != nil {
			return fmt.Errorf("store question: %w", err)
		}
		t.memory.numbers.question = q.N
	}
	return nil
}

func (t *step) saveEntries(ctx context.Context, r *state.Result) error {
	if r.Forget != "" {
		if err := t.q.execOne(ctx, resetOverflow, r.Forget); err != nil {
			return fmt.Errorf("forget stored outputs: %w", err)
		}
	}
	for i, body := range t.entries {
		begins := t.change.Append.Entries[i].Begins()
		if err := t.q.execOne(ctx, insertEntry, string(t.change.Append.Session),
			r.Entries+int64(i), begins, body); err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
	}
	return nil
}

func (t *step) saveArrivals(ctx context.Context, r *state.Result) error {
	for i := range r.Arrivals {
		if err := t.saveArrival(ctx, r.Arrivals[i].Key, r.Arrivals[i].New); err != nil {
			return err
		}
	}
	return nil
}

func (t *step) saveArrival(ctx context.Context, seq int64, a state.Arrival) error {
	if err := t.q.execOne(
		ctx, updateArrival, string(a.State), a.Attempts, a.Problem, reading.Nanos(a.Finished), seq,
	); err != nil {
		return fmt.Errorf("update arrival: %w", err)
	}
	t.memory.keepArrival(seq, a)
	return nil
}

func (t *step) saveQuestions(ctx context.Context, r *state.Result) error {
	for i := range r.Questions {
		if err := t.saveQuestion(ctx, &r.Questions[i].New.Approval); err != nil {
			return err
		}
	}
	return nil
}

func (t *step) saveQuestion(ctx context.Context, a *bot.Approval) error {
	votes, err := reading.EncodeVotes(a.Votes)
	if err != nil {
		return err
	}
	err = t.q.execOne(
		ctx, updateApproval, string(a.State), a.Scope, a.By, a.ByName, string(votes), reading.Nanos(a.Decided), a.Row, a.ID,
	)
	if err != nil {
		return fmt.Errorf("update question: %w", err)
	}
	return nil
}

func (t *step) saveRows(ctx context.Context, r *state.Result) error {
	for i := range r.Rows {
		id, d := r.Rows[i].Key, r.Rows[i].New
		err := t.q.execOne(ctx, updateRow,
			string(d.State), d.Message, reading.Nanos(d.NotBefore), d.Attempts, d.Unconfirmed, reading.Nanos(d.Doubt),
			d.Problem, reading.Nanos(d.Finished), id)
		if err != nil {
			return fmt.Errorf("update row: %w", err)
		}
		t.memory.keepRow(id, d)
	}
	return nil
}

func (t *step) saveFacts(ctx context.Context, r *state.Result) error {
	for _, f := range r.Facts {
		var err error
		if f.Value == "" {
			err = t.q.execOne(ctx, deleteFact, f.Bucket, f.Key)
		} else {
			err = t.q.execOne(ctx, setFact, f.Bucket, f.Key, f.Value, reading.Nanos(f.Expires))
		}
		if err != nil {
			return fmt.Errorf("store fact: %w", err)
		}
	}
	return nil
}

func (t *step) saveCharges(ctx context.Context, _ *state.Result) error {
	if len(t.change.Charges) == 0 {
		return nil
	}
	rows := make([][5]any, len(t.change.Charges))
	for i, c := range t.change.Charges {
		rows[i] = [5]any{c.Key, c.Scope, c.Unit, c.Day, c.N}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("store charges: %w", err)
	}
	n, err := t.q.execChanged(ctx, insertCharges, string(list))
	if err != nil {
		return fmt.Errorf("store charges: %w", err)
	}
	switch {
	case n == int64(len(rows)):
		t.memory.addCharges(t.change.Charges)
	case len(t.needs.Charged) > 0 && !t.sure:
		return errGuess
	default:
		t.memory.forgetAccounts()
	}
	return nil
}
